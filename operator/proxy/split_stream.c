// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/split_stream.h"

#include "common/base/fiber.h"
#include "common/wire/batch.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/split.h"

#include <stdlib.h>
#include <string.h>

struct split_stream {
    struct arena memory; // of the batch and the lists of ranks
    struct batch batch;
    size_t head, at;          // bytes of the document: its head; what was sent so far
    size_t tensor;            // the tensor at `at`
    uint32_t n;               // number of pieces
    size_t each, added;       // rows of a piece; rows of padding in all
    uint32_t *ranks;          // in the order of their pieces
    uint32_t *first;          // ranks[first[i]] to ranks[first[i + 1] - 1] get piece i
    struct blob *heads;       // of all pieces, one behind the other
    size_t *heads_at;         // offsets in `heads`; one more than there are pieces
    struct record_part *last; // segments of the last row of this tensor, if padding repeats it
    size_t n_last, size_last, last_len;
    struct quota *quota; // borrowed
    size_t charged;
};

// Ranks of the pieces

static void sort_ranks(const struct dispatch *d, struct split_stream *s)
{
    s->first = arena_array(&s->memory, d->n_pieces + 1, sizeof *s->first);
    s->ranks = arena_array(&s->memory, d->world, sizeof *s->ranks);
    for (uint32_t i = 0; i < d->world; i++)
        s->first[d->piece_of[i]]++;
    for (uint32_t i = 0, at = 0, n; i <= d->n_pieces; i++, at += n) {
        n = s->first[i];
        s->first[i] = at;
    }
    uint32_t *next = arena_memdup(&s->memory, s->first, (d->n_pieces + 1) * sizeof *next);
    for (uint32_t i = 0; i < d->world; i++)
        s->ranks[next[d->piece_of[i]]++] = i;
}

static int add_to_piece(const struct split_stream *s, struct call *c, size_t piece, const struct record_part *part,
                        struct err *err)
{
    int r = 0;
    for (uint32_t i = s->first[piece]; i < s->first[piece + 1] && r == 0; i++)
        r = call_rank_send(&c->ranks[s->ranks[i]], part, err);
    return r;
}

// Heads

static int make_head(const char *method, struct split_stream *s, uint32_t i, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    _cleanup_(scatter_done) struct scatter doc = SCATTER_INIT;
    int r = batch_slice(&s->batch, i * s->each, s->each, &a, &doc, err);
    size_t len = doc.own.len;
    if (r == 0 && len > SPLIT_MADE_MAX - s->heads->len)
        r = split_too_many_heads(method, s->n, err);
    if (r == 0 && !blob_reserve(s->heads, len))
        r = split_no_room(method, err);
    if (r == 0) {
        fiber_copy(s->heads->data + s->heads->len, doc.own.data, len);
        s->heads->len += len;
        s->heads_at[i + 1] = s->heads->len;
    }
    return r;
}

static int make_heads(const char *method, struct split_stream *s, struct err *err)
{
    int r = 0;
    s->heads = blob_new(0, s->quota);
    s->heads_at = arena_array(&s->memory, (size_t)s->n + 1, sizeof *s->heads_at);
    for (uint32_t i = 0; i < s->n && r == 0; i++)
        r = make_head(method, s, i, err);
    return r;
}

struct record_part split_stream_head(const struct split_stream *s, const struct call *c, uint32_t rank)
{
    const size_t *at = &s->heads_at[c->plan->d.piece_of[rank]];
    return (struct record_part){s->heads, at[0], at[1] - at[0]};
}

size_t split_stream_head_len(const struct split_stream *s)
{
    return s->head;
}

// Beginning

static int read_batch(const char *method, struct split_stream *s, bool pad, const struct record_call *args,
                      struct err *err)
{
    int r = batch_read_head(args->args, args->args_len, &s->memory, &s->batch, err);
    if (r == 0)
        r = batch_check_parts(&s->batch, s->n, err);
    if (r == 0)
        r = batch_pieces(s->batch.rows, s->n, pad, &s->each, &s->added, err);
    return r < 0 ? err_wrap(err, "%s()", method) : 0;
}

bool split_stream_ready(const struct record_call *args, size_t *ret_head, size_t *want)
{
    struct err err = ERR_INIT;
    *ret_head = 0;
    *want = SAFETENSORS_PREFIX;
    if (args->args_len < SAFETENSORS_PREFIX)
        return false;
    *want = batch_is_safetensors(args->args, args->args_len) && safetensors_head_len(args->args, ret_head, &err) == 0
                ? *ret_head
                : 0;
    return *want && args->args_len >= *want;
}

static int charge(const char *method, struct split_stream *s, struct err *err)
{
    if (!quota_charge(s->quota, s->memory.used - s->charged))
        return split_no_room(method, err);
    s->charged = s->memory.used;
    return 0;
}

int split_stream_make(const char *method, uint32_t n, bool pad, const struct record_call *args, struct quota *quota,
                      struct split_stream **ret, struct err *err)
{
    size_t want;
    *ret = NULL;
    struct split_stream *s = xcalloc(1, sizeof *s);
    s->quota = quota;
    s->n = n;
    (void)split_stream_ready(args, &s->head, &want);
    s->at = s->head;
    int r = read_batch(method, s, pad, args, err);
    bool fits = r == 0 && batch_in_order(&s->batch);
    if (fits)
        r = make_heads(method, s, err);
    if (fits && r == 0)
        r = charge(method, s, err);
    if (!fits || r < 0) {
        split_stream_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

int split_stream_aim(struct split_stream *s, const char *method, struct dispatch_plan *d, struct err *err)
{
    d->rows = s->batch.rows;
    d->each = s->each;
    d->added = s->added;
    sort_ranks(&d->d, s);
    return charge(method, s, err);
}

static void drop_last(struct split_stream *s)
{
    while (s->n_last)
        blob_unref(s->last[--s->n_last].blob);
    s->last_len = 0;
}

void split_stream_free(struct split_stream *s)
{
    if (!s)
        return;
    drop_last(s);
    free(s->last);
    blob_unref(s->heads);
    quota_refund(s->quota, s->charged);
    arena_done(&s->memory);
    free(s);
}

// Sending rows

// Keeps a part of the last row, which some pieces get again.
static void keep_last(struct split_stream *s, const struct record_part *part)
{
    MEM_GROW(s->last, s->n_last, s->size_last);
    s->last[s->n_last++] = *part;
    blob_ref(part->blob);
    s->last_len += part->blob->area ? 0 : part->len;
}

size_t split_stream_waits(const struct split_stream *s)
{
    return s->last_len;
}

static int add_padding(struct split_stream *s, struct call *c, struct err *err)
{
    const struct dispatch_plan *d = c->plan;
    int r = 0;
    for (uint32_t i = 0; i < d->d.n_pieces && r == 0; i++)
        for (size_t again = batch_padding(d->rows, d->each, i); again > 0 && r == 0; again--)
            for (size_t k = 0; k < s->n_last && r == 0; k++)
                r = add_to_piece(s, c, i, &s->last[k], err);
    drop_last(s);
    return r;
}

// Sends as much of the part as belongs to one piece of one tensor. *part becomes the rest.
static int take_segment(struct split_stream *s, struct call *c, struct record_part *part, struct err *err)
{
    const struct dispatch_plan *d = c->plan;
    const struct safetensors_tensor *t = &s->batch.doc.tensors[s->tensor];
    size_t row = t->len / d->rows, end = t->offset + t->len, piece = (s->at - t->offset) / (row * d->each);
    size_t until = MIN(end, t->offset + (piece + 1) * d->each * row);
    if (d->added && s->at < end - row)
        until = MIN(until, end - row);
    const struct record_part one = {part->blob, part->offset, MIN(part->len, until - s->at)};
    int r = add_to_piece(s, c, piece, &one, err);
    if (r == 0 && d->added && s->at >= end - row)
        keep_last(s, &one);
    part->offset += one.len;
    part->len -= one.len;
    s->at += one.len;
    if (r == 0 && s->at == end && d->added)
        r = add_padding(s, c, err);
    return r;
}

int split_stream_take(struct split_stream *s, struct call *c, const struct record_part *part, struct err *err)
{
    const struct safetensors *doc = &s->batch.doc;
    struct record_part rest = *part;
    int r = 0;
    if (rest.len > doc->len - s->at)
        return err_set(err, ERR_INVALID, "%s(): safetensors: a document of more than %zu bytes, where its tensors end",
                       c->req.method, doc->len);
    while (rest.len && r == 0) {
        const struct safetensors_tensor *t = &doc->tensors[s->tensor];
        if (s->at == t->offset + t->len)
            s->tensor++;
        else
            r = take_segment(s, c, &rest, err);
    }
    return r;
}

int split_stream_end(const struct split_stream *s, const char *method, struct err *err)
{
    return s->at == s->batch.doc.len
               ? 0
               : err_set(err, ERR_INVALID,
                         "%s(): safetensors: a document of %zu bytes, but its tensors end at byte %zu", method, s->at,
                         s->batch.doc.len);
}
