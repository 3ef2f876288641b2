// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/victims.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const struct occupant *t, const struct gang *g)
{
    return g->uid && t->pod && str_eq(t->pod->obj.meta.owner.uid, g->uid) && str_eq(t->pod->obj.meta.ns, g->ns);
}

// An assumed pod (no pod object yet) never goes.
static bool may_go(const struct occupant *t, enum victims_who who, int32_t priority)
{
    if (!t->pod)
        return false;
    switch (who) {
    case VICTIMS_LOWER:
        return t->pod->priority < priority;
    case VICTIMS_GANGS:
        return t->pod->obj.meta.owner.uid; // kept only for pods of ours
    case VICTIMS_ALL:
        break;
    }
    return true;
}

static int by_importance(const void *x, const void *y)
{
    const struct pod *a = (*(const struct occupant *const *)x)->pod, *b = (*(const struct occupant *const *)y)->pod;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->obj.meta.created_ms != b->obj.meta.created_ms)
        return a->obj.meta.created_ms < b->obj.meta.created_ms ? -1 : 1;
    int r = strcmp(a->obj.meta.name, b->obj.meta.name);
    return r ? r : strcmp(a->obj.meta.ns, b->obj.meta.ns);
}

void victims_of(const struct room *r, enum victims_who who, int32_t priority, const struct gang *gang, struct arena *a,
                struct victims *ret)
{
    size_t n = 0;
    *ret = (struct victims){0};
    LIST_FOREACH(l, &r->occupants) {
        const struct occupant *t = CONTAINER_OF(l, struct occupant, link);
        if (!may_go(t, who, priority))
            continue;
        if (is_of(t, gang) && who == VICTIMS_LOWER)
            return;
        n += !is_of(t, gang);
    }
    if (!n)
        return;
    ret->items = arena_array(a, n, sizeof(struct occupant *));
    LIST_FOREACH(l, &r->occupants) {
        const struct occupant *t = CONTAINER_OF(l, struct occupant, link);
        if (may_go(t, who, priority) && !is_of(t, gang))
            ret->items[ret->n++] = t;
    }
    qsort(ret->items, n, sizeof(struct occupant *), by_importance);
}

int32_t victims_priority(const struct victims *v, size_t i)
{
    return v->items[i]->pod->priority;
}

size_t victims_below(const struct victims *v, int32_t priority)
{
    size_t i = 0;
    while (i < v->n && victims_priority(v, i) > priority)
        i++;
    return i;
}

struct resources victims_minus(const struct victims *v, size_t first, struct arena *a)
{
    struct resources sum = {0};
    for (size_t i = first; i < v->n; i++)
        resources_add(&sum, &v->items[i]->requests, a);
    for (size_t i = 0; i < sum.n; i++)
        sum.items[i].milli = -sum.items[i].milli;
    return sum;
}

static bool can_stay(const struct occupant *t, const struct resources *requests, const __int128 *slack)
{
    for (size_t i = 0; i < requests->n; i++)
        if (resources_get(&t->requests, requests->items[i].id) > slack[i])
            return false;
    return true;
}

struct victims_cost victims_cost(const struct room *r, const struct victims *v, size_t first,
                                 const struct resources *requests, int64_t times)
{
    static const struct resources nothing;
    struct victims_cost cost = {.priority = INT32_MIN};
    __int128 slack[RESOURCE_MAX]; // the rest of each requested resource if all victims went
    for (size_t i = 0; i < requests->n; i++) {
        slack[i] = room_left(r, false, &nothing, requests->items[i].id) - (__int128)requests->items[i].milli * times;
        for (size_t k = first; k < v->n; k++)
            slack[i] += resources_get(&v->items[k]->requests, requests->items[i].id);
    }
    for (size_t k = first; k < v->n; k++) {
        const struct occupant *t = v->items[k];
        if (can_stay(t, requests, slack)) {
            for (size_t i = 0; i < requests->n; i++)
                slack[i] -= resources_get(&t->requests, requests->items[i].id);
            continue;
        }
        cost.n++;
        cost.priority = MAX(cost.priority, victims_priority(v, k));
    }
    return cost;
}
