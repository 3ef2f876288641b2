// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_reader.h"

#include "common/base/mem.h"
#include "common/wire/share.h"

#include <stdlib.h>
#include <string.h>

// A body that has not come in whole.
struct record_open {
    uint32_t call, rank;
    uint8_t type;
    size_t len; // so far
    uint64_t seq;
    struct blob *body; // NULL unless it is collected
    size_t max, want;  // of a collected body: the most bytes, and how many are enough; 0 = all
};

void record_reader_init(struct record_reader *r, const struct record_reader_config *config)
{
    *r = (struct record_reader){.config = *config};
    if (!r->config.max_body)
        r->config.max_body = (size_t)64 << 20;
    if (!r->config.max_open)
        r->config.max_open = 1024;
}

static void open_drop(struct record_reader *r, unsigned i)
{
    blob_unref(r->open[i].body);
    r->open[i] = r->open[--r->n_open];
}

static void let_go(struct record_reader *r)
{
    blob_unref(TAKE_PTR(r->filled));
    blob_unref(TAKE_PTR(r->tail));
    r->filled_at = 0;
}

void record_reader_done(struct record_reader *r)
{
    while (r->n_open)
        open_drop(r, r->n_open - 1);
    free(r->open);
    let_go(r);
    blob_unref(r->rest);
    *r = (struct record_reader){.failed = ERR_CANCELED};
}

bool record_reader_at_boundary(const struct record_reader *r)
{
    return !r->in_body && r->head_len == 0;
}

int record_reader_end(const struct record_reader *r, struct err *err)
{
    return record_reader_at_boundary(r) ? 0 : err_set(err, ERR_PROTO, "a message ended inside a record");
}

unsigned record_reader_count(struct record_reader *r)
{
    unsigned n = r->count;
    r->count = 0;
    return n;
}

uint64_t record_reader_unfinished(const struct record_reader *r)
{
    uint64_t first = UINT64_MAX;
    for (unsigned i = 0; i < r->n_open; i++)
        if (r->open[i].body)
            first = MIN(first, r->open[i].seq);
    return first;
}

// Both sides of a connection may have a call of the same number: an answer continues only an answer.
static bool goes_on(const struct record_open *o, const struct record_header *h)
{
    return o->call == h->call && o->rank == h->rank && record_is_answer(o->type) == record_is_answer(h->type);
}

static struct record_open *open_find(struct record_reader *r, const struct record_header *h)
{
    if (r->found < r->n_open && goes_on(&r->open[r->found], h)) // callers ask several times for each record
        return &r->open[r->found];
    for (unsigned i = r->n_open; i-- > 0;)
        if (goes_on(&r->open[i], h)) {
            r->found = i;
            return &r->open[i];
        }
    return NULL;
}

// A call has one body of arguments, whatever its rank.
static bool is_taken(const struct record_reader *r, const struct record_header *h)
{
    for (unsigned i = 0; h->type == RECORD_CALL && i < r->n_open; i++)
        if (r->open[i].type == RECORD_CALL && r->open[i].call == h->call)
            return true;
    return false;
}

// The group's answer, or error, counts for all ranks.
static bool same_rank(uint32_t a, uint32_t b)
{
    return a == b || a == RECORD_GROUP || b == RECORD_GROUP;
}

// A CANCEL ends the unfinished arguments of its call, an ERROR the unfinished result of its rank. Returns whether one
// of them was being collected.
static bool end_unfinished(struct record_reader *r, const struct record_header *h)
{
    bool collected = false;
    for (unsigned i = r->n_open; i-- > 0;) {
        const struct record_open *o = &r->open[i];
        if (o->call != h->call)
            continue;
        if (h->type == RECORD_CANCEL ? record_is_answer(o->type)
                                     : o->type != RECORD_RESULT || !same_rank(o->rank, h->rank))
            continue;
        collected = collected || o->body;
        open_drop(r, i);
    }
    return collected;
}

static struct record_open *open_new(struct record_reader *r, const struct record_header *h, uint64_t seq)
{
    MEM_GROW(r->open, r->n_open, r->size_open);
    struct record_open *o = &r->open[r->n_open++];
    *o = (struct record_open){.call = h->call, .rank = h->rank, .type = h->type, .seq = seq, .max = r->config.max_body};
    return o;
}

static int over_quota(const struct record_header *h, struct err *err)
{
    return err_set(err, ERR_LIMIT, "no room for %u more bytes of call %u: too much is waiting already", h->len,
                   h->call);
}

// Checks the header in r->now against earlier records. Finds the buffer for the body, unless the body stays in the
// input.
static int body_begin(struct record_reader *r, struct err *err)
{
    struct record *now = &r->now;
    const struct record_header *h = &now->h;
    if (h->type == RECORD_CANCEL || h->type == RECORD_ERROR)
        now->dropped = end_unfinished(r, h) && h->type == RECORD_CANCEL;
    struct record_open *o = open_find(r, h);
    if (o && o->type != h->type)
        return err_set(err, ERR_PROTO, "a %s of call %u, rank %d inside its %s", record_type_name(h->type), h->call,
                       (int)h->rank, record_type_name(o->type));
    if (!o && is_taken(r, h))
        return err_set(err, ERR_PROTO, "call id %u is in use by a CALL that has not come in whole", h->call);
    now->offset = o ? o->len : 0;
    now->seq = o ? o->seq : ++r->seq;
    if (h->len > r->config.max_body - now->offset)
        return err_set(err, ERR_LIMIT, "the %s of call %u is longer than %zu bytes", record_type_name(h->type), h->call,
                       r->config.max_body);
    if (!o && (h->flags & RECORD_MORE)) {
        if (r->n_open == r->config.max_open)
            return err_set(err, ERR_LIMIT, "more than %u bodies unfinished at a time", r->config.max_open);
        o = open_new(r, h, now->seq);
        if (r->config.whole && !(o->body = blob_new(0, r->config.quota)))
            return over_quota(h, err);
    }
    if (!o || !o->body || h->flags & RECORD_SHARED)
        return 0;
    if (h->len <= o->max - o->len && blob_reserve(o->body, h->len)) {
        r->filled = blob_ref(o->body);
        return 0;
    }
    if (r->config.whole)
        return over_quota(h, err);
    blob_unref(TAKE_PTR(o->body));
    now->over = true;
    return 0;
}

// Continues a collected body with bytes in shared memory. They are copied, because their owner may change them. If not
// all of the body is wanted, the rest comes next, as it is.
static int collect_shared(struct record_reader *r, struct record_open *o, struct blob *shared, size_t at,
                          struct err *err)
{
    struct record *now = &r->now;
    size_t left = shared->len - at, n = o->want ? MIN(left, o->want - o->len) : left;
    if (n > o->max - o->len || !blob_reserve(o->body, n)) {
        if (r->config.whole)
            return over_quota(&now->h, err);
        blob_unref(TAKE_PTR(o->body));
        now->over = true;
        return 0;
    }
    memcpy(o->body->data + o->len, shared->data + at, n);
    r->filled = blob_ref(o->body);
    if (n == left)
        return 0;
    r->rest = blob_ref(shared);
    r->rest_at = at + n;
    r->rest_last = !(now->h.flags & RECORD_MORE);
    now->h.flags |= RECORD_MORE;
    now->h.len = (uint32_t)n;
    return 0;
}

// Replaces a reference by the bytes for which it stands, from `at` on.
static int put_shared(struct record_reader *r, struct blob *shared, size_t at, struct err *err)
{
    struct record *now = &r->now;
    struct record_open *o = open_find(r, &now->h);
    now->body = NULL;
    now->h.len = (uint32_t)(shared->len - at);
    if (shared->len - at > r->config.max_body - now->offset)
        return err_set(err, ERR_LIMIT, "the %s of call %u is longer than %zu bytes", record_type_name(now->h.type),
                       now->h.call, r->config.max_body);
    if (!o || !o->body) {
        r->filled = blob_ref(shared);
        r->filled_at = at;
        return 0;
    }
    if (!r->config.tail || now->h.type != RECORD_CALL || now->h.flags & RECORD_MORE)
        return collect_shared(r, o, shared, at, err);
    now->h.len = 0; // the tail adds nothing to the collected bytes
    r->filled = blob_ref(o->body);
    r->tail = now->tail = blob_ref(shared);
    return 0;
}

static int resolve(struct record_reader *r, struct err *err)
{
    struct record *now = &r->now;
    struct blob *shared;
    if (!r->config.share)
        return err_set(err, ERR_PROTO, "a reference to memory that is not shared");
    if (now->h.type == RECORD_CALL && now->offset == 0)
        return err_set(err, ERR_PROTO, "a CALL that begins with a reference, where its head should be");
    int code = share_borrow(r->config.share, r->filled ? r->filled->data : now->body, now->h.len, &shared, err);
    if (code < 0)
        return code;
    blob_unref(TAKE_PTR(r->filled));
    now->h.flags &= (uint8_t)~RECORD_SHARED;
    code = put_shared(r, shared, 0, err);
    blob_unref(shared);
    return code;
}

// The record is complete. True: hand it out. False: it was a piece of a body that is collected.
static bool body_end(struct record_reader *r)
{
    struct record *now = &r->now;
    struct record_open *o = open_find(r, &now->h);
    bool more = now->h.flags & RECORD_MORE;
    r->in_body = false;
    if (o)
        o->len += now->h.len;
    if (r->filled) {
        now->blob = r->filled;
        if (o && o->body)
            o->body->len = o->len;
        now->body = r->filled->data + r->filled_at;
        now->len = r->filled->len - r->filled_at;
    } else {
        now->len = now->h.len;
    }
    if (o && o->body)
        now->offset = 0;
    bool collected = o && o->body;
    if (collected && o->want && o->len >= o->want) {
        blob_unref(TAKE_PTR(o->body)); // r->filled still contains it
        collected = false;
    }
    if (o && !more)
        open_drop(r, (unsigned)(o - r->open));
    return !more || !collected;
}

bool record_reader_collect(struct record_reader *r, const struct record *first, size_t max, size_t want)
{
    struct record_open *o = open_find(r, &first->h);
    if (!o || o->body || o->len != first->len || first->len > max)
        return false;
    bool taken = first->blob && first->blob == r->filled && first->blob->refs == 1 && !first->blob->area;
    if (taken && blob_recharge(r->filled, r->config.quota)) {
        o->body = TAKE_PTR(r->filled);
    } else if (!(o->body = blob_copy(first->body, first->len, r->config.quota))) {
        return false;
    }
    o->max = max;
    o->want = want;
    return true;
}

static int fail(struct record_reader *r, int code)
{
    r->failed = code;
    return code;
}

// 1 = a header is complete in r->now.h
static int head_next(struct record_reader *r, const char **data, size_t *len, struct err *err)
{
    const char *head = *data;
    size_t take = RECORD_HEADER_SIZE;
    if (r->head_len || *len < RECORD_HEADER_SIZE) {
        take = MIN(*len, RECORD_HEADER_SIZE - r->head_len);
        if (take)
            memcpy(r->head + r->head_len, *data, take);
        r->head_len += take;
        head = r->head;
    }
    *data += take;
    *len -= take;
    if (head == r->head && r->head_len < RECORD_HEADER_SIZE)
        return 0;
    r->head_len = 0;
    r->count++;
    r->now = (struct record){0};
    r->got = 0;
    int code = record_header_decode(head, &r->now.h, err);
    if (code == 0)
        code = body_begin(r, err);
    if (code < 0)
        return fail(r, code);
    r->in_body = true;
    return 1;
}

// Returns the buffer for the next bytes. A collected body continues after the bytes that it has.
static char *body_buffer(struct record_reader *r)
{
    const struct record_open *o = open_find(r, &r->now.h);
    return r->filled->data + (o && o->body && !(r->now.h.flags & RECORD_SHARED) ? o->len : 0) + r->got;
}

// If bodies come in pieces and the quota has no room, the piece is not charged. Its owner has to find this out and
// refuse the call. So the peer's other calls are not affected.
static struct blob *new_piece(const struct record_reader *r)
{
    struct blob *b = blob_new(r->now.h.len, r->config.quota);
    return b || r->config.whole ? b : blob_new(r->now.h.len, NULL);
}

char *record_reader_buffer(struct record_reader *r, size_t *ret_room)
{
    *ret_room = r->now.h.len - r->got;
    if (r->failed || !r->in_body || !*ret_room)
        return NULL;
    if (!r->filled)
        r->filled = new_piece(r);
    return r->filled ? body_buffer(r) : NULL;
}

// 1 = the body is complete
static int body_next(struct record_reader *r, const char **data, size_t *len, struct err *err)
{
    size_t need = r->now.h.len - r->got, take = MIN(need, *len);
    if (need && !take)
        return 0;                     // the body may still come in one piece
    if (!r->filled && take == need) { // whole in the input
        r->now.body = *data;
    } else if (!r->filled && !(r->filled = new_piece(r))) {
        return fail(r, over_quota(&r->now.h, err));
    }
    if (r->filled && take && *data != body_buffer(r))
        memcpy(body_buffer(r), *data, take);
    r->got += take;
    *data += take;
    *len -= take;
    return take == need;
}

// Turns the rest that collect_shared() has left into a record of its own.
static int take_rest(struct record_reader *r, struct err *err)
{
    struct record_header h = r->now.h;
    const struct record_open *o = open_find(r, &h);
    struct blob *rest = TAKE_PTR(r->rest);
    if (r->rest_last)
        h.flags &= (uint8_t)~RECORD_MORE;
    r->now = (struct record){.h = h, .seq = r->now.seq, .offset = o ? o->len : 0};
    int code = put_shared(r, rest, r->rest_at, err);
    blob_unref(rest);
    return code < 0 ? code : 1;
}

// 1 = a record is complete
static int take_record(struct record_reader *r, const char **data, size_t *len, struct err *err)
{
    int got = r->in_body ? 1 : head_next(r, data, len, err), code = 0;
    if (got > 0)
        got = body_next(r, data, len, err);
    if (got > 0 && r->now.h.flags & RECORD_SHARED)
        code = resolve(r, err);
    return code < 0 ? code : got;
}

int record_reader_next(struct record_reader *r, const char **data, size_t *len, struct record *ret, struct err *err)
{
    if (r->failed)
        return err_set(err, r->failed, "an earlier record was refused");
    for (;;) {
        if (!r->in_body)
            let_go(r);
        int got = r->rest ? take_rest(r, err) : take_record(r, data, len, err);
        if (got <= 0)
            return got < 0 ? fail(r, got) : 0;
        if (body_end(r)) {
            *ret = r->now;
            if (r->rest) {
                ret->next = r->rest->data + r->rest_at;
                ret->next_len = r->rest->len - r->rest_at;
                ret->next_last = r->rest_last;
            }
            return 1;
        }
    }
}
