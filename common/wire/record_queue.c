// SPDX-License-Identifier: Apache-2.0
#include "common/wire/record_queue.h"

#include "common/base/mem.h"
#include "common/base/small.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_KEPT = 8 }; // a block for so many parts stays while a body waits for more

const size_t record_item_cost = sizeof(struct record_item);

void record_queue_init(struct record_queue *q, size_t max_bytes)
{
    *q = (struct record_queue){.max_bytes = max_bytes};
    list_init(&q->items);
    list_init(&q->begun);
    list_init(&q->parked);
}

void record_queue_done(struct record_queue *q)
{
    list_splice(&q->items, &q->parked);
    while (!list_empty(&q->items)) {
        struct record_item *it = CONTAINER_OF(q->items.next, struct record_item, link);
        list_splice(&q->items, &it->followers);
        record_item_free(q, it);
    }
    quota_unref(TAKE_PTR(q->quota));
}

size_t record_parts_cost(const struct record_part *parts, size_t n)
{
    size_t cost = n * sizeof *parts;
    for (size_t i = 0; i < n; i++)
        cost += parts[i].blob->area ? 0 : parts[i].len;
    return cost;
}

bool record_item_is_of(const struct record_item *it, uint32_t call, bool answers)
{
    return it->h.call == call && record_is_answer(it->h.type) == answers;
}

bool record_item_can_go(const struct record_item *it)
{
    return !it->held && (it->sent < it->len || !it->open);
}

static void pay(struct record_queue *q, struct record_item *it)
{
    size_t size = sizeof *it + it->behind;
    it->paid = size <= q->credit;
    if (it->paid) {
        q->credit -= size;
        return;
    }
    it->paid = quota_charge(q->quota, size);
    it->owed = !it->paid;
    q->uncharged += it->owed ? size : 0;
}

static void take_back(struct record_queue *q, const struct record_item *it)
{
    if (it->paid)
        quota_refund(q->quota, sizeof *it + it->behind);
    else if (it->owed)
        q->uncharged -= sizeof *it + it->behind;
}

static struct record_item *item_new(struct record_queue *q, const struct record_header *h, size_t len, size_t behind,
                                    size_t cost)
{
    struct record_item *it = small_new(sizeof *it + behind);
    *it = (struct record_item){.h = *h, .len = len, .cost = cost, .behind = behind};
    if (q->quota)
        pay(q, it);
    it->h.flags &= (uint8_t)~RECORD_MORE;
    list_init(&it->link);
    list_init(&it->begun);
    list_init(&it->followers);
    return it;
}

bool record_item_free(struct record_queue *q, struct record_item *it)
{
    bool sent = it->sent > 0;
    q->bytes -= it->cost;
    q->n_items--;
    list_remove(&it->link);
    list_remove(&it->begun);
    for (size_t i = it->part; i < it->n_parts; i++)
        blob_unref(it->parts[i].blob);
    if (it->size_parts)
        free(it->parts);
    if (it->stream)
        *it->stream = NULL;
    take_back(q, it);
    small_free(it, sizeof *it + it->behind);
    return sent;
}

static int check_room(const struct record_queue *q, const struct record_header *h, size_t cost, struct err *err)
{
    if (cost <= record_queue_room(q))
        return 0;
    return err_set(err, ERR_LIMIT, "cannot queue a %s of call %u: %zu bytes wait already, the peer reads too slowly",
                   record_type_name(h->type), h->call, q->bytes);
}

static void enqueue(struct record_queue *q, struct record_item *it)
{
    struct list *at = &q->items;
    LIST_FOREACH(l, &q->begun) {
        struct record_item *first = CONTAINER_OF(l, struct record_item, begun);
        if (record_item_is_of(first, it->h.call, record_is_answer(it->h.type)))
            at = &first->followers;
    }
    list_append(at, &it->link);
    q->n_items++;
    q->bytes += it->cost;
}

static size_t length_of(const struct record_part *parts, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        len += parts[i].len;
    return len;
}

struct record_item *record_item_push(struct record_queue *q, const struct record_header *h,
                                     const struct record_part *parts, size_t n, struct err *err)
{
    size_t cost = sizeof(struct record_item) + record_parts_cost(parts, n);
    if (check_room(q, h, cost, err) < 0)
        return NULL;
    struct record_item *it = item_new(q, h, length_of(parts, n), n * sizeof *parts, cost);
    it->parts = (struct record_part *)(it + 1);
    it->n_parts = n;
    for (size_t i = 0; i < n; i++) {
        it->parts[i] = parts[i];
        blob_ref(parts[i].blob);
    }
    enqueue(q, it);
    return it;
}

struct record_item *record_item_copy(struct record_queue *q, const struct record_header *h, const void *body,
                                     size_t len, struct err *err)
{
    size_t cost = sizeof(struct record_item) + len;
    if (check_room(q, h, cost, err) < 0)
        return NULL;
    struct record_item *it = item_new(q, h, len, len, cost);
    it->copy = (char *)(it + 1);
    if (len)
        memcpy(it->copy, body, len);
    enqueue(q, it);
    return it;
}

struct record_item *record_item_begin(struct record_queue *q, const struct record_header *h)
{
    struct record_item *it = item_new(q, h, 0, 0, sizeof *it);
    enqueue(q, it);
    return it;
}

// Makes room for n parts more: in the place of parts that are out, or in a larger block.
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

int record_item_add(struct record_queue *q, struct record_item *it, const struct record_part *parts, size_t n,
                    struct err *err)
{
    size_t cost = record_parts_cost(parts, n);
    int r = check_room(q, &it->h, cost, err);
    if (r < 0)
        return r;
    reserve_parts(it, n);
    for (size_t i = 0; i < n; i++) {
        it->parts[it->n_parts++] = parts[i];
        blob_ref(parts[i].blob);
        it->len += parts[i].len;
    }
    it->cost += cost;
    q->bytes += cost;
    return 0;
}

void record_item_shrink(struct record_item *it)
{
    if (it->part < it->n_parts || it->size_parts <= PARTS_KEPT)
        return;
    free(TAKE_PTR(it->parts));
    it->part = it->n_parts = it->size_parts = 0;
}

void record_item_park(struct record_queue *q, struct record_item *it)
{
    it->parked = true;
    list_remove(&it->link);
    list_append(&q->parked, &it->link);
}

void record_item_unpark(struct record_queue *q, struct record_item *it)
{
    if (!it->parked || !record_item_can_go(it))
        return;
    it->parked = false;
    list_remove(&it->link);
    list_append(&q->items, &it->link);
}
