// SPDX-License-Identifier: Apache-2.0
#include "common/base/deadline.h"

#include "common/base/mem.h"

#include <stdlib.h>

void deadlines_done(struct deadlines *d)
{
    free(d->heap);
    *d = DEADLINES_INIT;
}

static void put(struct deadlines *d, size_t index, struct deadline *l)
{
    d->heap[index] = l;
    l->index = index;
}

static void rise(struct deadlines *d, size_t index, struct deadline *l)
{
    for (; index > 1 && d->heap[index / 2]->at > l->at; index /= 2)
        put(d, index, d->heap[index / 2]);
    put(d, index, l);
}

static void sink(struct deadlines *d, size_t index, struct deadline *l)
{
    for (size_t child; (child = index * 2) <= d->used; index = child) {
        if (child < d->used && d->heap[child + 1]->at < d->heap[child]->at)
            child++;
        if (d->heap[child]->at >= l->at)
            break;
        put(d, index, d->heap[child]);
    }
    rise(d, index, l);
}

void deadlines_add(struct deadlines *d, struct deadline *l, int64_t at)
{
    l->at = at;
    if (l->index) {
        sink(d, l->index, l);
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
    size_t index = l->index;
    if (!index)
        return;
    struct deadline *last = d->heap[d->used--];
    if (last != l)
        sink(d, index, last);
    l->index = 0;
}

struct deadline *deadlines_first(const struct deadlines *d)
{
    return d->used ? d->heap[1] : NULL;
}
