// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/event_history.h"

#include "common/base/mem.h"

#include <stdlib.h>

enum {
    OBJECTS_MAX = 2048,
    SERIES_MAX = 16,    // per object
    BURST = 25,         // client-go's spam filter
    REFILL_MS = 300000, // until there is one more token
};

void event_history_init(struct event_history *h)
{
    *h = (struct event_history){.by_key = MAP_INIT};
    list_init(&h->objects);
}

void event_history_done(struct event_history *h)
{
    while (!list_empty(&h->objects))
        event_history_forget(h, CONTAINER_OF(h->objects.next, struct event_object, link));
    map_done(&h->by_key);
}

struct event_object *event_history_find(const struct event_history *h, const char *key)
{
    return map_get(&h->by_key, key);
}

struct event_object *event_history_get(struct event_history *h, const char *key, int64_t now_ms)
{
    struct event_object *o = map_get(&h->by_key, key);
    if (!o) {
        if (h->by_key.used >= OBJECTS_MAX)
            event_history_forget(h, CONTAINER_OF(h->objects.next, struct event_object, link));
        o = xcalloc(1, sizeof *o);
        o->key = xstrdup(key);
        o->tokens = BURST;
        o->refilled_ms = now_ms;
        list_init(&o->link);
        map_set(&h->by_key, key, o);
    }
    list_remove(&o->link);
    list_append(&h->objects, &o->link);
    return o;
}

void event_history_forget(struct event_history *h, struct event_object *o)
{
    map_del(&h->by_key, o->key);
    list_remove(&o->link);
    free(o->key);
    free(o->series);
    free(o);
}

bool event_object_take_token(struct event_object *o, int64_t now_ms)
{
    int64_t more = (now_ms - o->refilled_ms) / REFILL_MS;
    o->refilled_ms += more * REFILL_MS;
    o->tokens = (int)MIN(o->tokens + more, BURST);
    if (!o->tokens)
        return false;
    o->tokens--;
    return true;
}

struct series *event_object_series(struct event_object *o, uint64_t key)
{
    for (int i = 0; i < o->n_series; i++)
        if (o->series[i].key == key)
            return &o->series[i];
    return NULL;
}

struct series *event_object_new_series(struct event_object *o)
{
    struct series *oldest = NULL;
    for (int i = 0; i < o->n_series; i++) {
        if (!o->series[i].key)
            return &o->series[i];
        if (!oldest || o->series[i].last_ms < oldest->last_ms)
            oldest = &o->series[i];
    }
    if (o->n_series == SERIES_MAX)
        return oldest;
    o->series = xrealloc(o->series, (size_t)o->n_series + 1, sizeof *o->series);
    return &o->series[o->n_series++];
}
