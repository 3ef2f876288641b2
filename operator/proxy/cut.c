// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/cut.h"

#include "common/wire/batch.h"
#include "operator/proxy/deal.h"
#include "operator/proxy/split.h"

#include <stdlib.h>
#include <string.h>

struct cut {
    struct arena memory; // of the batch
    struct batch batch;
    size_t head, at;          // bytes of the document: its head; what comes next
    size_t tensor;            // that it belongs to
    uint32_t *ranks;          // by the piece that they get ...
    uint32_t *first;          // ... those of piece i from this one on, up to that of i + 1
    struct blob *heads;       // of the pieces, one behind the other
    size_t *heads_at;         // likewise, one more than there are
    struct record_part *last; // stretches of the last row of this tensor, where it is repeated
    size_t n_last, size_last;
    struct quota *quota; // borrowed
    size_t charged;
};

static int no_room(const struct request *q, struct err *err)
{
    return err_set(err, ERR_LIMIT, "%s(): no room for its arguments: too many calls of this controller wait already",
                   q->method);
}

// Who gets which piece

static void sort_ranks(const struct dispatch *d, struct cut *cut)
{
    cut->first = arena_array(&cut->memory, d->n_chunks + 1, sizeof *cut->first);
    cut->ranks = arena_array(&cut->memory, d->world, sizeof *cut->ranks);
    for (uint32_t i = 0; i < d->world; i++)
        cut->first[d->chunk[i]]++;
    for (uint32_t i = 0, at = 0, n; i <= d->n_chunks; i++, at += n) {
        n = cut->first[i];
        cut->first[i] = at;
    }
    uint32_t *next = arena_memdup(&cut->memory, cut->first, (d->n_chunks + 1) * sizeof *next);
    for (uint32_t i = 0; i < d->world; i++)
        cut->ranks[next[d->chunk[i]]++] = i;
}

static int add_to_piece(struct call *c, size_t piece, const struct record_part *part, struct err *err)
{
    const struct cut *cut = c->args.cut;
    int r = 0;
    for (uint32_t i = cut->first[piece]; i < cut->first[piece + 1] && r == 0; i++)
        r = args_pass_to(c, cut->ranks[i], part, err);
    return r;
}

// Heads

static int make_head(const struct request *q, const struct deal *d, struct cut *cut, uint32_t i, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct scatter doc;
    scatter_init(&doc);
    int r = batch_slice(&cut->batch, i * d->each, d->each, &a, &doc, err);
    size_t len = doc.own.len;
    if (r == 0 && len > SPLIT_MADE_MAX - cut->heads->len)
        r = err_set(err, ERR_LIMIT,
                    "%s(): what is in front of the values of its %u pieces takes more than %zu bytes; "
                    "send fewer tensors or columns",
                    q->method, d->d.n_chunks, SPLIT_MADE_MAX);
    if (r == 0 && !blob_reserve(cut->heads, len))
        r = no_room(q, err);
    if (r == 0) {
        memcpy(cut->heads->data + cut->heads->len, doc.own.data, len);
        cut->heads->len += len;
        cut->heads_at[i + 1] = cut->heads->len;
    }
    scatter_done(&doc);
    arena_done(&a);
    return r;
}

static int make_heads(const struct request *q, const struct deal *d, struct cut *cut, struct err *err)
{
    uint32_t n = d->d.n_chunks;
    int r = 0;
    cut->heads = blob_new(0, cut->quota);
    cut->heads_at = arena_array(&cut->memory, (size_t)n + 1, sizeof *cut->heads_at);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = make_head(q, d, cut, i, err);
    return r;
}

struct record_part cut_head(const struct call *c, uint32_t rank)
{
    const struct cut *cut = c->args.cut;
    const size_t *at = &cut->heads_at[c->deal->d.chunk[rank]];
    return (struct record_part){cut->heads, at[0], at[1] - at[0]};
}

size_t cut_head_len(const struct call *c)
{
    return c->args.cut->head;
}

// Beginning

static int read_batch(const struct request *q, struct deal *d, struct cut *cut, const struct record_call *args,
                      struct err *err)
{
    int r = batch_read_head(args->args, args->args_len, &cut->memory, &cut->batch, err);
    if (r == 0)
        r = batch_pieces(cut->batch.rows, d->d.n_chunks, q->pad, &d->each, &d->added, err);
    d->rows = cut->batch.rows;
    return r < 0 ? err_wrap(err, "%s()", q->method) : 0;
}

// How much of the arguments has to be there; 0 = all of them.
static size_t needed(const struct record_call *args, size_t *ret_head)
{
    struct err err = ERR_INIT;
    if (args->args_len < SAFETENSORS_PREFIX)
        return SAFETENSORS_PREFIX;
    if (!batch_is_safetensors(args->args, args->args_len) || safetensors_head_len(args->args, ret_head, &err) < 0)
        return 0;
    return *ret_head;
}

int cut_begin(const struct request *q, struct deal *d, const struct record_call *args, struct quota *quota,
              struct cut **ret, size_t *want, struct err *err)
{
    size_t head = 0;
    *ret = NULL;
    *want = needed(args, &head);
    if (!*want || args->args_len < *want)
        return 0;
    struct cut *cut = xcalloc(1, sizeof *cut);
    cut->quota = quota;
    cut->head = cut->at = head;
    *want = 0;
    int r = read_batch(q, d, cut, args, err);
    bool fits = r == 0 && batch_in_order(&cut->batch);
    if (fits) {
        sort_ranks(&d->d, cut);
        r = make_heads(q, d, cut, err);
    }
    if (fits && r == 0 && !quota_charge(quota, cut->memory.used))
        r = no_room(q, err);
    else if (fits && r == 0)
        cut->charged = cut->memory.used;
    if (!fits || r < 0) {
        cut_free(cut);
        return r;
    }
    *ret = cut;
    return 0;
}

static void drop_last(struct cut *cut)
{
    while (cut->n_last)
        blob_unref(cut->last[--cut->n_last].blob);
}

void cut_free(struct cut *cut)
{
    if (!cut)
        return;
    drop_last(cut);
    free(cut->last);
    blob_unref(cut->heads);
    quota_refund(cut->quota, cut->charged);
    arena_done(&cut->memory);
    free(cut);
}

// Dealing out

// Of the last row, which some pieces get again.
static void keep_last(struct cut *cut, const struct record_part *part)
{
    if (cut->n_last == cut->size_last) {
        cut->size_last = MAX(cut->size_last * 2, (size_t)4);
        cut->last = xrealloc(cut->last, cut->size_last, sizeof *cut->last);
    }
    cut->last[cut->n_last++] = *part;
    blob_ref(part->blob);
}

static int add_padding(struct call *c, struct err *err)
{
    struct cut *cut = c->args.cut;
    const struct deal *d = c->deal;
    int r = 0;
    for (uint32_t i = 0; i < d->d.n_chunks && r == 0; i++)
        for (size_t again = batch_padding(d->rows, d->each, i); again > 0 && r == 0; again--)
            for (size_t k = 0; k < cut->n_last && r == 0; k++)
                r = add_to_piece(c, i, &cut->last[k], err);
    drop_last(cut);
    return r;
}

// As much of the part as lies in one piece of one tensor; *part becomes the rest.
static int take_stretch(struct call *c, struct record_part *part, struct err *err)
{
    struct cut *cut = c->args.cut;
    const struct deal *d = c->deal;
    const struct safetensors_tensor *t = &cut->batch.doc.tensors[cut->tensor];
    size_t row = t->len / d->rows, end = t->offset + t->len, piece = (cut->at - t->offset) / (row * d->each);
    size_t until = MIN(end, t->offset + (piece + 1) * d->each * row);
    if (d->added && cut->at < end - row)
        until = MIN(until, end - row);
    const struct record_part one = {part->blob, part->offset, MIN(part->len, until - cut->at)};
    int r = add_to_piece(c, piece, &one, err);
    if (r == 0 && d->added && cut->at >= end - row)
        keep_last(cut, &one);
    part->offset += one.len;
    part->len -= one.len;
    cut->at += one.len;
    if (r == 0 && cut->at == end && d->added)
        r = add_padding(c, err);
    return r;
}

int cut_take(struct call *c, const struct record_part *part, struct err *err)
{
    struct cut *cut = c->args.cut;
    const struct safetensors *doc = &cut->batch.doc;
    struct record_part rest = *part;
    int r = 0;
    if (rest.len > doc->len - cut->at)
        return err_set(err, ERR_INVALID, "%s(): safetensors: a document of more than %zu bytes, where its tensors end",
                       c->req.method, doc->len);
    while (rest.len && r == 0) {
        const struct safetensors_tensor *t = &doc->tensors[cut->tensor];
        if (cut->at == t->offset + t->len)
            cut->tensor++;
        else
            r = take_stretch(c, &rest, err);
    }
    return r;
}

int cut_end(const struct call *c, struct err *err)
{
    const struct cut *cut = c->args.cut;
    return cut->at == cut->batch.doc.len
               ? 0
               : err_set(err, ERR_INVALID,
                         "%s(): safetensors: a document of %zu bytes, but its tensors end at byte %zu", c->req.method,
                         cut->at, cut->batch.doc.len);
}
