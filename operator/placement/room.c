// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/room.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

struct room *room_new(const char *name)
{
    struct room *r = xcalloc(1, sizeof *r);
    r->name = xstrdup(name);
    list_init(&r->occupants);
    list_init(&r->unbound);
    return r;
}

void room_free(struct room *r)
{
    if (r->node)
        object_unref(&r->node->obj);
    free(r->free);
    free(r->name);
    free(r);
}

static void add(struct room *r, const struct resources *amounts, int sign)
{
    if (amounts->n && (size_t)amounts->items[amounts->n - 1].id >= r->n_free) {
        size_t n = (size_t)resource_count();
        r->free = xrealloc(r->free, n, sizeof *r->free);
        memset(r->free + r->n_free, 0, (n - r->n_free) * sizeof *r->free);
        r->n_free = n;
    }
    for (size_t i = 0; i < amounts->n; i++)
        r->free[amounts->items[i].id] += sign * (__int128)amounts->items[i].milli;
}

void room_set_node(struct room *r, const struct node *node)
{
    const struct node *old = r->node;
    if (node) {
        object_ref(&node->obj);
        add(r, &node->allocatable, 1);
    }
    r->node = node;
    if (!node || node->ready)
        r->silent_ms = 0;
    if (old) {
        add(r, &old->allocatable, -1);
        object_unref(&old->obj);
    }
}

static void count(struct room *r, struct occupant *t)
{
    add(r, &t->requests, -1);
    list_append(&r->occupants, &t->link);
    t->counted = true;
}

static void uncount(struct room *r, struct occupant *t)
{
    add(r, &t->requests, 1);
    list_remove(&t->link);
    t->counted = false;
}

void room_take(struct room *r, struct occupant *t)
{
    list_init(&t->link);
    list_init(&t->unbound);
    if (t->pod && !t->pod->node)
        list_append(&r->unbound, &t->unbound);
    else
        count(r, t);
}

void room_succeed(struct room *r, struct occupant *old, struct occupant *t)
{
    if (list_empty(&t->unbound))
        return;
    if (!list_empty(&old->unbound)) {
        list_remove(&t->unbound);
        list_insert_before(&old->unbound, &t->unbound);
    }
    if (old->counted)
        count(r, t);
}

void room_give(struct room *r, struct occupant *t)
{
    list_remove(&t->unbound);
    if (t->counted)
        uncount(r, t);
}

static __int128 exact_free(const struct room *r, int id)
{
    return (size_t)id < r->n_free ? r->free[id] : 0;
}

static int64_t saturated(__int128 v)
{
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static int64_t allocatable(const struct room *r, int id)
{
    return r->node ? resources_get(&r->node->allocatable, id) : 0;
}

int64_t room_used(const struct room *r, int id)
{
    return saturated(allocatable(r, id) - exact_free(r, id));
}

int64_t room_left(const struct room *r, bool empty, const struct resources *taken, int id)
{
    __int128 have = empty ? allocatable(r, id) : exact_free(r, id);
    return saturated(have - resources_get(taken, id));
}

int64_t room_fit(const struct room *r, bool empty, const struct resources *taken, const struct resources *requests)
{
    int64_t fit = ROOM_FIT_MAX;
    for (size_t i = 0; i < requests->n; i++) {
        int64_t each = requests->items[i].milli;
        int64_t have = room_left(r, empty, taken, requests->items[i].id);
        if (have < each)
            return 0;
        fit = MIN(fit, have / each);
    }
    return fit;
}

static void count_unbound(struct room *r, bool ours)
{
    LIST_FOREACH(l, &r->unbound) {
        struct occupant *t = CONTAINER_OF(l, struct occupant, unbound);
        if (t->ours == ours && room_fit(r, ours, &(struct resources){0}, &t->requests))
            count(r, t);
    }
}

bool room_settle(struct room *r)
{
    bool appeared = false;
    LIST_FOREACH(l, &r->unbound) {
        struct occupant *t = CONTAINER_OF(l, struct occupant, unbound);
        t->was_counted = t->counted;
        if (t->counted)
            uncount(r, t);
    }
    count_unbound(r, true);
    count_unbound(r, false);
    LIST_FOREACH(l, &r->unbound) {
        const struct occupant *t = CONTAINER_OF(l, struct occupant, unbound);
        appeared |= t->was_counted && !t->counted;
    }
    return appeared;
}
