// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_writer.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

#define FRAGMENT_MIN ((size_t)2 << 10) // a message is rather sent with less than filled with shorter cuts

struct item {
    struct list link;      // in items, or in `followers` of the body it waits for
    struct list begun;     // in `stalled`, when a first record is out and more is to come
    struct list followers; // of the same call and direction, queued after this one began
    struct record_header h;
    size_t len, sent; // of the body
    size_t cost;      // what it counts in `bytes` before anything is sent
    size_t part, part_sent;
    size_t n_parts;
    struct record_part *parts; // behind this struct
    char *copy;                // behind this struct, where the body was copied
};

void record_writer_init(struct record_writer *w, size_t max_bytes)
{
    *w = (struct record_writer){.max_bytes = max_bytes};
    list_init(&w->items);
    list_init(&w->stalled);
}

static bool is_answer(unsigned type)
{
    return type == RECORD_RESULT || type == RECORD_ERROR;
}

static bool same_call(const struct item *it, uint32_t call, bool answers)
{
    return it->h.call == call && is_answer(it->h.type) == answers;
}

static struct item *item_new(const struct record_header *h, size_t len, size_t behind, size_t cost)
{
    struct item *it = xmalloc(sizeof *it + behind);
    *it = (struct item){.h = *h, .len = len, .cost = cost};
    it->h.flags &= (uint8_t)~RECORD_MORE;
    list_init(&it->link);
    list_init(&it->begun);
    list_init(&it->followers);
    return it;
}

// Returns true if something of it was sent.
static bool item_free(struct record_writer *w, struct item *it)
{
    bool sent = it->sent > 0;
    w->bytes -= it->cost - it->sent;
    w->n_items--;
    list_remove(&it->link);
    list_remove(&it->begun);
    for (size_t i = 0; i < it->n_parts; i++)
        blob_unref(it->parts[i].blob);
    free(it);
    return sent;
}

void record_writer_done(struct record_writer *w)
{
    while (!list_empty(&w->items)) {
        struct item *it = CONTAINER_OF(w->items.next, struct item, link);
        LIST_FOREACH(l, &it->followers) {
            list_remove(l);
            list_append(&w->items, l);
        }
        item_free(w, it);
    }
}

static int full(const struct record_writer *w, const struct record_header *h, struct err *err)
{
    return err_set(err, ERR_LIMIT, "cannot queue a %s of call %u: %zu bytes wait already, the peer reads too slowly",
                   record_type_name(h->type), h->call, w->bytes);
}

static void enqueue(struct record_writer *w, struct item *it)
{
    struct list *at = &w->items;
    LIST_FOREACH(l, &w->stalled) {
        struct item *first = CONTAINER_OF(l, struct item, begun);
        if (same_call(first, it->h.call, is_answer(it->h.type)))
            at = &first->followers;
    }
    list_append(at, &it->link);
    w->n_items++;
    w->bytes += it->cost;
}

int record_writer_push(struct record_writer *w, const struct record_header *h, const struct record_part *parts,
                       size_t n, struct err *err)
{
    size_t len = 0, behind = n * sizeof *parts;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    size_t cost = sizeof(struct item) + behind + len;
    if (cost > w->max_bytes - w->bytes)
        return full(w, h, err);
    struct item *it = item_new(h, len, behind, cost);
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
    size_t cost = sizeof(struct item) + len;
    if (cost > w->max_bytes - w->bytes)
        return full(w, h, err);
    struct item *it = item_new(h, len, len, cost);
    it->copy = (char *)(it + 1);
    if (len)
        memcpy(it->copy, body, len);
    enqueue(w, it);
    return 0;
}

static bool drop_from(struct record_writer *w, struct list *list, uint32_t call, bool answers)
{
    bool sent = false;
    LIST_FOREACH(l, list) {
        struct item *it = CONTAINER_OF(l, struct item, link);
        if (!same_call(it, call, answers))
            continue;
        LIST_FOREACH(f, &it->followers)
            item_free(w, CONTAINER_OF(f, struct item, link));
        sent |= item_free(w, it);
    }
    return sent;
}

bool record_writer_drop(struct record_writer *w, uint32_t call, bool answers)
{
    return drop_from(w, &w->items, call, answers);
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

static void put_body(struct item *it, struct sink *sink, size_t n)
{
    if (it->copy) {
        put(sink, it->copy + it->sent, n, NULL);
        return;
    }
    while (n) {
        const struct record_part *p = &it->parts[it->part];
        size_t take = MIN(n, p->len - it->part_sent);
        put(sink, p->blob->data + p->offset + it->part_sent, take, p->blob);
        n -= take;
        it->part_sent += take;
        if (it->part_sent == p->len) {
            it->part++;
            it->part_sent = 0;
        }
    }
}

// Writes the next record of the item, `n` bytes of its body.
static void write_record(struct record_writer *w, struct item *it, struct sink *sink, size_t n)
{
    struct record_header h = it->h;
    h.len = (uint32_t)n;
    if (it->sent + n < it->len)
        h.flags |= RECORD_MORE;
    record_header_encode(sink->out + sink->used, &h);
    sink->used += RECORD_HEADER_SIZE;
    put_body(it, sink, n);
    it->sent += n;
    w->bytes -= n;
}

// The first record of a long body is out: what else is queued of its call waits for its end.
static void stall(struct record_writer *w, struct item *it)
{
    list_append(&w->stalled, &it->begun);
    LIST_FOREACH(l, &w->items) {
        const struct item *other = CONTAINER_OF(l, struct item, link);
        if (!same_call(other, it->h.call, is_answer(it->h.type)))
            continue;
        list_remove(l);
        list_append(&it->followers, l);
    }
}

// After a record of the item at the front.
static void advance(struct record_writer *w, struct item *it)
{
    list_remove(&it->link);
    if (it->sent < it->len) {
        if (list_empty(&it->begun))
            stall(w, it);
        list_append(&w->items, &it->link);
        return;
    }
    struct list *front = w->items.next;
    LIST_FOREACH(l, &it->followers) { // their call has begun already: before what has not
        list_remove(l);
        list_insert_before(front, l);
    }
    item_free(w, it);
}

static size_t fill(struct record_writer *w, struct sink *sink, size_t size)
{
    size_t used = 0;
    while (!list_empty(&w->items) && size - used >= RECORD_HEADER_SIZE) {
        if (sink->gather && !gather_takes(sink->gather))
            break;
        struct item *it = CONTAINER_OF(w->items.next, struct item, link);
        size_t rest = it->len - it->sent, room = MIN(size - used - RECORD_HEADER_SIZE, RECORD_BODY_MAX);
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
