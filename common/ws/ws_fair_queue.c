// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_fair_queue.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct ws_owner {
    struct ws_fair_queue *queue;
    struct list link;  // in the list of owners that wait
    struct list ready; // sessions
    char *name;
    unsigned refs, weight;
    size_t left; // bytes of its quantum
};

void ws_fair_queue_init(struct ws_fair_queue *q)
{
    *q = (struct ws_fair_queue){0};
    list_init(&q->waiting);
}

void ws_fair_queue_done(struct ws_fair_queue *q)
{
    assert(list_empty(&q->waiting));
    map_done(&q->owners);
}

struct ws_owner *ws_fair_queue_owner(struct ws_fair_queue *q, const char *name, unsigned weight)
{
    struct ws_owner *o = map_get(&q->owners, name);
    if (!o) {
        o = xcalloc(1, sizeof *o);
        *o = (struct ws_owner){.queue = q, .name = xstrdup(name), .weight = MAX(weight, 1u)};
        list_init(&o->link);
        list_init(&o->ready);
        map_set(&q->owners, name, o);
    }
    o->refs++;
    return o;
}

void ws_owner_unref(struct ws_owner *o)
{
    if (!o || --o->refs)
        return;
    assert(list_empty(&o->ready));
    map_del(&o->queue->owners, o->name);
    free(o->name);
    free(o);
}

void ws_owner_ready(struct ws_owner *o, struct list *ready)
{
    if (!list_empty(ready))
        return;
    list_append(&o->ready, ready);
    o->queue->n_ready++;
    if (list_empty(&o->link))
        list_append(&o->queue->waiting, &o->link);
}

void ws_owner_leave(struct ws_owner *o, struct list *ready)
{
    if (list_empty(ready))
        return;
    list_remove(ready);
    o->queue->n_ready--;
    if (list_empty(&o->ready)) {
        list_remove(&o->link);
        o->left = 0;
    }
}

struct list *ws_fair_queue_next(struct ws_fair_queue *q)
{
    if (list_empty(&q->waiting))
        return NULL;
    struct ws_owner *o = CONTAINER_OF(q->waiting.next, struct ws_owner, link);
    if (!o->left)
        o->left = o->weight * WS_QUANTUM;
    struct list *ready = list_pop(&o->ready);
    q->reading = o;
    o->refs++;
    q->n_ready--;
    if (list_empty(&o->ready))
        list_remove(&o->link);
    return ready;
}

void ws_fair_queue_spend(struct ws_fair_queue *q, size_t bytes)
{
    struct ws_owner *o = TAKE_PTR(q->reading);
    o->left = list_empty(&o->ready) ? 0 : o->left - MIN(bytes, o->left); // owners do not save bytes for later
    list_remove(&o->link);
    if (!list_empty(&o->ready))
        list_insert_before(o->left ? q->waiting.next : &q->waiting, &o->link);
    ws_owner_unref(o);
}
