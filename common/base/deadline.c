// SPDX-License-Identifier: Apache-2.0
#include "common/base/deadline.h"

#include "common/base/mem.h"

#include <stdlib.h>

void deadlines_done(struct deadlines *d)
{
    free(d->heap);
    *d = DEADLINES_INIT;
}

static void put(struct deadlines *d, size_t place, struct deadline *l)
{
    d->heap[place] = l;
    l->place = place;
}

static void rise(struct deadlines *d, size_t place, struct deadline *l)
{
    for (; place > 1 && d->heap[place / 2]->at > l->at; place /= 2)
        put(d, place, d->heap[place / 2]);
    put(d, place, l);
}

static void sink(struct deadlines *d, size_t place, struct deadline *l)
{
    for (size_t child; (child = place * 2) <= d->used; place = child) {
        if (child < d->used && d->heap[child + 1]->at < d->heap[child]->at)
            child++;
        if (d->heap[child]->at >= l->at)
            break;
        put(d, place, d->heap[child]);
    }
    rise(d, place, l);
}

void deadlines_add(struct deadlines *d, struct deadline *l, int64_t at)
{
    l->at = at;
    if (l->place) {
        sink(d, l->place, l);
        return;
    }
    if (d->used + 2 > d->size) {
        d->size = MAX((size_t)64, d->size * 2);
        d->heap = xrealloc(d->heap, d->size, sizeof(struct deadline *));
    }
    rise(d, ++d->used, l);
}

void deadlines_del(struct deadlines *d, struct deadline *l)
{
    size_t place = l->place;
    if (!place)
        return;
    struct deadline *last = d->heap[d->used--];
    if (last != l)
        sink(d, place, last);
    l->place = 0;
}

struct deadline *deadlines_first(const struct deadlines *d)
{
    return d->used ? d->heap[1] : NULL;
}
