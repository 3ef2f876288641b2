// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_writer.h"

#include "common/base/mem.h"
#include "common/wire/share.h"

#include <assert.h>
#include <string.h>

#define FRAGMENT_MIN ((size_t)2 << 10) // shorter cuts are not worth it: the message is sent with less

void record_writer_init(struct record_writer *w, size_t max_bytes)
{
    *w = (struct record_writer){0};
    record_queue_init(&w->queue, max_bytes);
}

void record_writer_charge(struct record_writer *w, struct quota *quota)
{
    assert(!w->queue.quota);
    w->queue.quota = quota_ref(quota);
}

void record_writer_done(struct record_writer *w)
{
    record_queue_done(&w->queue);
}

int record_writer_push(struct record_writer *w, const struct record_header *h, const struct record_part *parts,
                       size_t n, struct err *err)
{
    return record_item_push(&w->queue, h, parts, n, err) ? 0 : err->code;
}

int record_writer_copy(struct record_writer *w, const struct record_header *h, const void *body, size_t len,
                       struct err *err)
{
    return record_item_copy(&w->queue, h, body, len, err) ? 0 : err->code;
}

void record_writer_insist(struct record_writer *w, const struct record_header *h)
{
    (void)record_item_begin(&w->queue, h);
}

static bool drop_from(struct record_writer *w, struct list *list, uint32_t call, bool answers)
{
    bool sent = false;
    LIST_FOREACH(l, list) {
        struct record_item *it = CONTAINER_OF(l, struct record_item, link);
        if (!record_item_is_of(it, call, answers))
            continue;
        LIST_FOREACH(f, &it->followers)
            record_item_free(&w->queue, CONTAINER_OF(f, struct record_item, link));
        sent |= record_item_free(&w->queue, it);
    }
    return sent;
}

bool record_writer_drop(struct record_writer *w, uint32_t call, bool answers)
{
    bool parked = drop_from(w, &w->queue.parked, call, answers);
    return drop_from(w, &w->queue.items, call, answers) || parked;
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
    const struct record_item *it = call_in(&w->queue.items, call);
    it = it ? it : call_in(&w->queue.parked, call);
    return it && it->sent == 0 ? it : NULL;
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

bool record_writer_hold(struct record_writer *w, uint32_t call, bool answers, bool hold)
{
    LIST_FOREACH(l, &w->queue.begun) {
        struct record_item *it = CONTAINER_OF(l, struct record_item, begun);
        if (!record_item_is_of(it, call, answers))
            continue;
        it->held = hold;
        if (hold && !it->parked)
            record_item_park(&w->queue, it);
        record_item_unpark(&w->queue, it);
        return true;
    }
    return false;
}

bool record_writer_take(struct record_writer *w, struct record_header *ret_header, struct parts *ret)
{
    if (list_empty(&w->queue.items))
        return false;
    struct record_item *it = CONTAINER_OF(w->queue.items.next, struct record_item, link);
    *ret_header = it->h;
    if (it->copy)
        parts_add_copy(ret, it->copy, it->len, w->queue.quota);
    for (size_t i = 0; i < it->n_parts; i++)
        parts_add(ret, blob_ref(it->parts[i].blob), it->parts[i].offset, it->parts[i].len);
    record_item_free(&w->queue, it);
    return true;
}

// The destination of a message: all of it goes into `out`, or long segments go into `gather`, with runs of `out`
// between them.
struct message_sink {
    char *out;
    size_t used, run; // bytes of out; from `run` on, they are not in `gather` yet
    struct gather *gather;
};

static void end_run(struct message_sink *sink)
{
    if (sink->used > sink->run)
        gather_add(sink->gather, sink->out + sink->run, sink->used - sink->run, NULL);
    sink->run = sink->used;
}

static void put(struct message_sink *sink, const char *data, size_t n, struct blob *blob)
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
    w->queue.bytes -= n;
}

static void part_is_out(struct record_writer *w, struct record_item *it)
{
    blob_unref(it->parts[it->part++].blob);
    it->part_sent = 0;
    uncount(w, it, sizeof *it->parts);
    record_item_shrink(it);
}

static void put_body(struct record_writer *w, struct record_item *it, struct message_sink *sink, size_t n)
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
static void write_record(struct record_writer *w, struct record_item *it, struct message_sink *sink, size_t n)
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

// Call it after the first record of a long body: other queued bodies of the same call now wait for its end.
static void collect_followers(struct record_writer *w, struct record_item *it)
{
    list_append(&w->queue.begun, &it->begun);
    LIST_FOREACH(l, &w->queue.items) {
        const struct record_item *other = CONTAINER_OF(l, struct record_item, link);
        if (!record_item_is_of(other, it->h.call, record_is_answer(it->h.type)))
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
            collect_followers(w, it);
        if (record_item_can_go(it))
            list_append(&w->queue.items, &it->link);
        else
            record_item_park(&w->queue, it);
        return;
    }
    list_splice(w->queue.items.next, &it->followers); // their call has begun, so they go before calls that have not
    record_item_free(&w->queue, it);
}

// The next part of the item, if it goes by reference; otherwise NULL.
static const struct record_part *shared_part(const struct record_writer *w, const struct record_item *it)
{
    const struct record_part *p = it->part < it->n_parts && !it->part_sent ? &it->parts[it->part] : NULL;
    return p && share_takes(w->share, p) ? p : NULL;
}

static void write_shared(struct record_writer *w, struct record_item *it, struct message_sink *sink)
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

// How many bytes of the item come before the next part that goes by reference, or before its end.
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

static size_t fill(struct record_writer *w, struct message_sink *sink, size_t size)
{
    size_t used = 0;
    while (!list_empty(&w->queue.items) && size - used >= RECORD_HEADER_SIZE) {
        if (sink->gather && !gather_takes(sink->gather))
            break;
        struct record_item *it = CONTAINER_OF(w->queue.items.next, struct record_item, link);
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
    return fill(w, &(struct message_sink){.out = out}, size);
}

size_t record_writer_gather(struct record_writer *w, char *out, size_t size, struct gather *g)
{
    struct message_sink sink = {.out = out, .gather = g};
    size_t used = fill(w, &sink, size);
    end_run(&sink);
    return used;
}
