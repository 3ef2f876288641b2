// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_writer.h"

#include "common/base/mem.h"
#include "common/base/small.h"
#include "common/wire/share.h"

#include <stdlib.h>
#include <string.h>

#define FRAGMENT_MIN ((size_t)2 << 10) // a message is rather sent with less than filled with shorter cuts

struct record_item {
    struct list link;      // in items, or in `followers` of the body it waits for
    struct list begun;     // in `stalled`, when a first record is out and more is to come
    struct list followers; // of the same call and direction, queued after this one began
    struct record_header h;
    size_t len, sent;    // of the body
    size_t cost;         // what it counts in `bytes`
    size_t behind;       // this struct, bytes of the block
    size_t uncharged;    // where it should have been charged
    struct quota *quota; // it is charged to; NULL = none
    size_t part, part_sent;
    size_t n_parts, size_parts; // size_parts: where they are a block of their own
    struct record_part *parts;  // behind this struct, or of its own
    char *copy;                 // behind this struct, where the body was copied
    bool open;                  // more is to come
    bool held;                  // by the peer
    bool parked;
    struct record_stream *stream; // that knows it; NULL = none
};

void record_writer_init(struct record_writer *w, size_t max_bytes)
{
    *w = (struct record_writer){.max_bytes = max_bytes};
    list_init(&w->items);
    list_init(&w->stalled);
    list_init(&w->parked);
}

static bool is_answer(unsigned type)
{
    return type == RECORD_RESULT || type == RECORD_ERROR;
}

static bool same_call(const struct record_item *it, uint32_t call, bool answers)
{
    return it->h.call == call && is_answer(it->h.type) == answers;
}

void record_writer_charge(struct record_writer *w, struct quota *quota)
{
    quota_unref(w->quota);
    w->quota = quota_ref(quota);
}

static struct record_item *item_new(struct record_writer *w, const struct record_header *h, size_t len, size_t behind,
                                    size_t cost)
{
    struct record_item *it = small_new(sizeof *it + behind);
    *it = (struct record_item){.h = *h, .len = len, .cost = cost, .behind = behind};
    if (w->quota && quota_charge(w->quota, sizeof *it + behind))
        it->quota = quota_ref(w->quota);
    else if (w->quota)
        w->uncharged += it->uncharged = sizeof *it + behind;
    it->h.flags &= (uint8_t)~RECORD_MORE;
    list_init(&it->link);
    list_init(&it->begun);
    list_init(&it->followers);
    return it;
}

// Returns true if something of it was sent.
static bool item_free(struct record_writer *w, struct record_item *it)
{
    bool sent = it->sent > 0;
    w->bytes -= it->cost;
    w->n_items--;
    list_remove(&it->link);
    list_remove(&it->begun);
    for (size_t i = it->part; i < it->n_parts; i++)
        blob_unref(it->parts[i].blob);
    if (it->size_parts)
        free(it->parts);
    if (it->stream)
        it->stream->item = NULL;
    w->uncharged -= it->uncharged;
    if (it->quota)
        quota_refund(it->quota, sizeof *it + it->behind);
    quota_unref(it->quota);
    small_free(it, sizeof *it + it->behind);
    return sent;
}

void record_writer_done(struct record_writer *w)
{
    LIST_FOREACH(l, &w->parked) {
        list_remove(l);
        list_append(&w->items, l);
    }
    while (!list_empty(&w->items)) {
        struct record_item *it = CONTAINER_OF(w->items.next, struct record_item, link);
        LIST_FOREACH(l, &it->followers) {
            list_remove(l);
            list_append(&w->items, l);
        }
        item_free(w, it);
    }
    record_writer_charge(w, NULL);
}

static int full(const struct record_writer *w, const struct record_header *h, struct err *err)
{
    return err_set(err, ERR_LIMIT, "cannot queue a %s of call %u: %zu bytes wait already, the peer reads too slowly",
                   record_type_name(h->type), h->call, w->bytes);
}

static void enqueue(struct record_writer *w, struct record_item *it)
{
    struct list *at = &w->items;
    LIST_FOREACH(l, &w->stalled) {
        struct record_item *first = CONTAINER_OF(l, struct record_item, begun);
        if (same_call(first, it->h.call, is_answer(it->h.type)))
            at = &first->followers;
    }
    list_append(at, &it->link);
    w->n_items++;
    w->bytes += it->cost;
}

size_t record_writer_room(const struct record_writer *w)
{
    return w->max_bytes - MIN(w->bytes, w->max_bytes);
}

static size_t length_of(const struct record_part *parts, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    return len;
}

size_t record_parts_cost(const struct record_part *parts, size_t n)
{
    size_t cost = n * sizeof *parts;
    for (size_t i = 0; i < n; i++)
        cost += parts[i].blob->area ? 0 : parts[i].len;
    return cost;
}

int record_writer_push(struct record_writer *w, const struct record_header *h, const struct record_part *parts,
                       size_t n, struct err *err)
{
    size_t cost = sizeof(struct record_item) + record_parts_cost(parts, n);
    if (cost > record_writer_room(w))
        return full(w, h, err);
    struct record_item *it = item_new(w, h, length_of(parts, n), n * sizeof *parts, cost);
    it->parts = (struct record_part *)(it + 1);
    it->n_parts = n;
    for (size_t i = 0; i < n; i++) {
        it->parts[i] = parts[i];
        blob_ref(parts[i].blob);
    }
    enqueue(w, it);
    return 0;
}

int record_writer_copy(struct record_writer *w, const struct record_header *h, const void *body, size_t len,
                       struct err *err)
{
    size_t cost = sizeof(struct record_item) + len;
    if (cost > record_writer_room(w))
        return full(w, h, err);
    struct record_item *it = item_new(w, h, len, len, cost);
    it->copy = (char *)(it + 1);
    if (len)
        memcpy(it->copy, body, len);
    enqueue(w, it);
    return 0;
}

void record_writer_insist(struct record_writer *w, const struct record_header *h)
{
    struct record_item *it = item_new(w, h, 0, 0, sizeof *it);
    it->copy = (char *)(it + 1);
    enqueue(w, it);
}

static bool drop_from(struct record_writer *w, struct list *list, uint32_t call, bool answers)
{
    bool sent = false;
    LIST_FOREACH(l, list) {
        struct record_item *it = CONTAINER_OF(l, struct record_item, link);
        if (!same_call(it, call, answers))
            continue;
        LIST_FOREACH(f, &it->followers)
            item_free(w, CONTAINER_OF(f, struct record_item, link));
        sent |= item_free(w, it);
    }
    return sent;
}

bool record_writer_drop(struct record_writer *w, uint32_t call, bool answers)
{
    bool parked = drop_from(w, &w->parked, call, answers);
    return drop_from(w, &w->items, call, answers) || parked;
}

static const struct record_item *call_in(const struct list *list, uint32_t call)
{
    for (const struct list *l = list->next; l != list; l = l->next) {
        const struct record_item *it = CONTAINER_OF(l, struct record_item, link);
        if (it->h.type == RECORD_CALL && it->h.call == call)
            return it;
    }
    return NULL;
}

static const struct record_item *unsent_call(const struct record_writer *w, uint32_t call)
{
    const struct record_item *it = call_in(&w->items, call);
    it = it ? it : call_in(&w->parked, call);
    return it && it->sent == 0 ? it : NULL;
}

bool record_writer_unsent(const struct record_writer *w, uint32_t call)
{
    return unsent_call(w, call) != NULL;
}

struct blob *record_writer_body(const struct record_writer *w, uint32_t call)
{
    const struct record_item *it = unsent_call(w, call);
    if (!it)
        return NULL;
    if (it->copy)
        return blob_copy(it->copy, it->len, NULL);
    struct blob *body = blob_new(it->len, NULL);
    size_t at = 0;
    for (size_t i = 0; i < it->n_parts; at += it->parts[i++].len)
        memcpy(body->data + at, it->parts[i].blob->data + it->parts[i].offset, it->parts[i].len);
    return body;
}

// Whether a record of it can go out.
static bool can_go(const struct record_item *it)
{
    return !it->held && (it->sent < it->len || !it->open);
}

static void park(struct record_writer *w, struct record_item *it)
{
    it->parked = true;
    list_remove(&it->link);
    list_append(&w->parked, &it->link);
}

static void unpark(struct record_writer *w, struct record_item *it)
{
    if (!it->parked || !can_go(it))
        return;
    it->parked = false;
    list_remove(&it->link);
    list_append(&w->items, &it->link);
}

bool record_writer_hold(struct record_writer *w, uint32_t call, bool answers, bool hold)
{
    LIST_FOREACH(l, &w->stalled) {
        struct record_item *it = CONTAINER_OF(l, struct record_item, begun);
        if (!same_call(it, call, answers))
            continue;
        it->held = hold;
        if (hold && !it->parked)
            park(w, it);
        unpark(w, it);
        return true;
    }
    return false;
}

// Streams

static int check_size(const struct record_writer *w, const struct record_header *h, size_t cost, struct err *err)
{
    return cost > record_writer_room(w) ? full(w, h, err) : 0;
}

// Room for n parts more, where those that are out have made place or in a larger block.
static void reserve_parts(struct record_item *it, size_t n)
{
    if (it->part > it->n_parts / 2) {
        it->n_parts -= it->part;
        memmove(it->parts, it->parts + it->part, it->n_parts * sizeof *it->parts);
        it->part = 0;
    }
    if (it->n_parts + n <= it->size_parts)
        return;
    it->size_parts = MAX(it->n_parts + n, it->size_parts * 2);
    it->parts = xrealloc(it->parts, it->size_parts, sizeof *it->parts);
}

static void add_parts(struct record_writer *w, struct record_item *it, const struct record_part *parts, size_t n)
{
    size_t cost = record_parts_cost(parts, n);
    reserve_parts(it, n);
    for (size_t i = 0; i < n; i++) {
        it->parts[it->n_parts++] = parts[i];
        blob_ref(parts[i].blob);
        it->len += parts[i].len;
    }
    it->cost += cost;
    w->bytes += cost;
}

int record_stream_begin(struct record_stream *s, struct record_writer *w, const struct record_header *h,
                        const struct record_part *parts, size_t n, struct err *err)
{
    int r = check_size(w, h, sizeof(struct record_item) + record_parts_cost(parts, n), err);
    if (r < 0)
        return r;
    struct record_item *it = item_new(w, h, 0, 0, sizeof *it);
    it->open = true;
    it->stream = s;
    *s = (struct record_stream){w, it};
    enqueue(w, it);
    add_parts(w, it, parts, n);
    return 0;
}

int record_stream_add(struct record_stream *s, const struct record_part *parts, size_t n, struct err *err)
{
    if (!s->item)
        return 0;
    int r = check_size(s->writer, &s->item->h, record_parts_cost(parts, n), err);
    if (r < 0)
        return r;
    add_parts(s->writer, s->item, parts, n);
    unpark(s->writer, s->item);
    return 0;
}

void record_stream_end(struct record_stream *s)
{
    if (!s->item)
        return;
    s->item->open = false;
    unpark(s->writer, s->item);
}

bool record_stream_drop(struct record_stream *s)
{
    if (!s->item || !s->item->open)
        return false;
    struct list *front = s->writer->items.next;
    LIST_FOREACH(l, &s->item->followers) {
        list_remove(l);
        list_insert_before(front, l);
    }
    return item_free(s->writer, s->item);
}

size_t record_stream_waits(const struct record_stream *s)
{
    return s->item ? s->item->len - s->item->sent : 0;
}

void record_stream_forget(struct record_stream *s)
{
    (void)record_stream_drop(s);
    if (s->item)
        s->item->stream = NULL;
    *s = (struct record_stream){0};
}

bool record_writer_take(struct record_writer *w, struct record_header *ret_header, struct parts *ret)
{
    if (list_empty(&w->items))
        return false;
    struct record_item *it = CONTAINER_OF(w->items.next, struct record_item, link);
    *ret_header = it->h;
    if (it->copy)
        parts_add_copy(ret, it->copy, it->len, w->quota);
    for (size_t i = 0; i < it->n_parts; i++)
        parts_add(ret, blob_ref(it->parts[i].blob), it->parts[i].offset, it->parts[i].len);
    item_free(w, it);
    return true;
}

// Where a message goes: all of it into `out`, or the long stretches into `gather`, between runs of `out`.
struct sink {
    char *out;
    size_t used, run; // of out; what of it is not in `gather` yet
    struct gather *gather;
};

static void end_run(struct sink *sink)
{
    if (sink->used > sink->run)
        gather_add(sink->gather, sink->out + sink->run, sink->used - sink->run, NULL);
    sink->run = sink->used;
}

static void put(struct sink *sink, const char *data, size_t n, struct blob *blob)
{
    if (sink->gather && blob && n >= GATHER_MIN && gather_takes(sink->gather)) {
        end_run(sink);
        gather_add(sink->gather, data, n, blob);
    } else if (n) {
        memcpy(sink->out + sink->used, data, n);
        sink->used += n;
    }
}

static void uncount(struct record_writer *w, struct record_item *it, size_t n)
{
    it->cost -= n;
    w->bytes -= n;
}

// Nobody needs it for this peer any more.
static void part_is_out(struct record_writer *w, struct record_item *it)
{
    blob_unref(it->parts[it->part++].blob);
    it->part_sent = 0;
    uncount(w, it, sizeof *it->parts);
}

static void put_body(struct record_writer *w, struct record_item *it, struct sink *sink, size_t n)
{
    if (it->copy) {
        put(sink, it->copy + it->sent, n, NULL);
        uncount(w, it, n);
        return;
    }
    while (n) {
        const struct record_part *p = &it->parts[it->part];
        size_t take = MIN(n, p->len - it->part_sent);
        put(sink, p->blob->data + p->offset + it->part_sent, take, p->blob);
        if (!p->blob->area)
            uncount(w, it, take);
        n -= take;
        it->part_sent += take;
        if (it->part_sent == p->len)
            part_is_out(w, it);
    }
}

// Writes the next record of the item, `n` bytes of its body.
static void write_record(struct record_writer *w, struct record_item *it, struct sink *sink, size_t n)
{
    struct record_header h = it->h;
    h.len = (uint32_t)n;
    if (it->sent + n < it->len || it->open)
        h.flags |= RECORD_MORE;
    record_header_encode(sink->out + sink->used, &h);
    sink->used += RECORD_HEADER_SIZE;
    put_body(w, it, sink, n);
    it->sent += n;
}

// The first record of a long body is out: what else is queued of its call waits for its end.
static void stall(struct record_writer *w, struct record_item *it)
{
    list_append(&w->stalled, &it->begun);
    LIST_FOREACH(l, &w->items) {
        const struct record_item *other = CONTAINER_OF(l, struct record_item, link);
        if (!same_call(other, it->h.call, is_answer(it->h.type)))
            continue;
        list_remove(l);
        list_append(&it->followers, l);
    }
}

// After a record of the item at the front.
static void advance(struct record_writer *w, struct record_item *it)
{
    list_remove(&it->link);
    if (it->sent < it->len || it->open) {
        if (list_empty(&it->begun))
            stall(w, it);
        if (can_go(it))
            list_append(&w->items, &it->link);
        else
            park(w, it);
        return;
    }
    struct list *front = w->items.next;
    LIST_FOREACH(l, &it->followers) { // their call has begun already: before what has not
        list_remove(l);
        list_insert_before(front, l);
    }
    item_free(w, it);
}

// The next part of the item, where it goes by reference; NULL: it does not.
static const struct record_part *shared_part(const struct record_writer *w, const struct record_item *it)
{
    const struct record_part *p = it->part < it->n_parts && !it->part_sent ? &it->parts[it->part] : NULL;
    return p && share_takes(w->share, p) ? p : NULL;
}

static void write_shared(struct record_writer *w, struct record_item *it, struct sink *sink)
{
    const struct record_part *p = &it->parts[it->part];
    struct record_header h = it->h;
    size_t n = p->len;
    if (it->sent + n < it->len || it->open)
        h.flags |= RECORD_MORE;
    sink->used += share_write(w->share, &h, p, sink->out + sink->used);
    part_is_out(w, it);
    it->sent += n;
}

// How much of the item goes as bytes before something that goes by reference, or its end.
static size_t plain_rest(const struct record_writer *w, const struct record_item *it)
{
    size_t rest = 0;
    if (!w->share || !w->share->lends || it->copy)
        return it->len - it->sent;
    for (size_t i = it->part; i < it->n_parts; i++) {
        if (share_takes(w->share, &it->parts[i]) && (i > it->part || !it->part_sent))
            break;
        rest += it->parts[i].len - (i == it->part ? it->part_sent : 0);
    }
    return rest;
}

static size_t fill(struct record_writer *w, struct sink *sink, size_t size)
{
    size_t used = 0;
    while (!list_empty(&w->items) && size - used >= RECORD_HEADER_SIZE) {
        if (sink->gather && !gather_takes(sink->gather))
            break;
        struct record_item *it = CONTAINER_OF(w->items.next, struct record_item, link);
        if (shared_part(w, it)) {
            size_t before = sink->used;
            if (size - used < SHARE_ROOM)
                break;
            write_shared(w, it, sink);
            used += sink->used - before;
            advance(w, it);
            continue;
        }
        size_t rest = plain_rest(w, it), room = MIN(size - used - RECORD_HEADER_SIZE, RECORD_BODY_MAX);
        if (rest > room && (room < FRAGMENT_MIN || (used && rest <= FRAGMENT_MIN)))
            break;
        size_t n = MIN(rest, room);
        write_record(w, it, sink, n);
        used += RECORD_HEADER_SIZE + n;
        advance(w, it);
    }
    return used;
}

size_t record_writer_fill(struct record_writer *w, char *out, size_t size)
{
    return fill(w, &(struct sink){.out = out}, size);
}

size_t record_writer_gather(struct record_writer *w, char *out, size_t size, struct gather *g)
{
    struct sink sink = {.out = out, .gather = g};
    size_t used = fill(w, &sink, size);
    end_run(&sink);
    return used;
}
