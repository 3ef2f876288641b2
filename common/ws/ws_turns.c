// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_turns.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct ws_owner {
    struct ws_turns *turns;
    struct list link;  // in those who wait
    struct list ready; // sessions
    char *name;
    unsigned refs, weight;
    size_t left; // bytes of his turn
};

void ws_turns_init(struct ws_turns *t)
{
    *t = (struct ws_turns){0};
    list_init(&t->waiting);
}

void ws_turns_done(struct ws_turns *t)
{
    assert(list_empty(&t->waiting));
    map_done(&t->owners);
}

struct ws_owner *ws_turns_owner(struct ws_turns *t, const char *name, unsigned weight)
{
    struct ws_owner *o = map_get(&t->owners, name);
    if (!o) {
        o = xcalloc(1, sizeof *o);
        *o = (struct ws_owner){.turns = t, .name = xstrdup(name), .weight = MAX(weight, 1u)};
        list_init(&o->link);
        list_init(&o->ready);
        map_set(&t->owners, name, o);
    }
    o->refs++;
    return o;
}

void ws_owner_unref(struct ws_owner *o)
{
    if (!o || --o->refs)
        return;
    assert(list_empty(&o->ready));
    map_del(&o->turns->owners, o->name);
    free(o->name);
    free(o);
}

void ws_owner_ready(struct ws_owner *o, struct list *ready)
{
    if (!list_empty(ready))
        return;
    list_append(&o->ready, ready);
    o->turns->n_ready++;
    if (list_empty(&o->link))
        list_append(&o->turns->waiting, &o->link);
}

void ws_owner_leave(struct ws_owner *o, struct list *ready)
{
    if (list_empty(ready))
        return;
    list_remove(ready);
    o->turns->n_ready--;
    if (list_empty(&o->ready)) {
        list_remove(&o->link);
        o->left = 0;
    }
}

struct list *ws_turns_next(struct ws_turns *t)
{
    if (list_empty(&t->waiting))
        return NULL;
    struct ws_owner *o = CONTAINER_OF(t->waiting.next, struct ws_owner, link);
    if (!o->left)
        o->left = o->weight * WS_TURN_BYTES;
    struct list *ready = list_pop(&o->ready);
    t->reading = o;
    o->refs++;
    t->n_ready--;
    if (list_empty(&o->ready))
        list_remove(&o->link);
    return ready;
}

void ws_turns_spend(struct ws_turns *t, size_t bytes)
{
    struct ws_owner *o = TAKE_PTR(t->reading);
    o->left = list_empty(&o->ready) ? 0 : o->left - MIN(bytes, o->left); // nobody saves for later
    list_remove(&o->link);
    if (!list_empty(&o->ready))
        list_insert_before(o->left ? t->waiting.next : &t->waiting, &o->link);
    ws_owner_unref(o);
}
