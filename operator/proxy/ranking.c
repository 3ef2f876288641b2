// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/ranking.h"

#include <stdlib.h>

#define BUSY UINT32_MAX // no slot is free

void ranking_init(struct ranking *r, const struct list *members)
{
    *r = (struct ranking){.members = members, .stale = true};
    list_init(&r->changed);
}

static void drop_trees(struct ranking *r)
{
    for (size_t i = 0; i <= MEMBER_LANES_MAX; i++)
        free(TAKE_PTR(r->fewest[i]));
}

void ranking_done(struct ranking *r)
{
    while (list_pop(&r->changed))
        ;
    drop_trees(r);
    free(r->by_rank);
}

void ranking_stale(struct ranking *r)
{
    r->stale = true;
}

void ranking_changed(struct ranking *r, struct member *m)
{
    if (!r->stale && m->registered && list_empty(&m->recount))
        list_append(&r->changed, &m->recount);
}

static uint32_t count(struct member *m, uint8_t lane)
{
    const struct member_lane *l = member_lane(m, lane);
    return l->n_pending < l->limit ? (uint32_t)m->n_pending : BUSY;
}

static void list_members(struct ranking *r)
{
    r->n = 0;
    LIST_FOREACH(l, r->members) {
        struct member *m = CONTAINER_OF(l, struct member, of_group);
        if (!m->registered)
            continue;
        MEM_GROW(r->by_rank, r->n, r->room);
        m->index = r->n;
        r->by_rank[r->n++] = m;
    }
    for (r->size = 1; r->size < r->n;)
        r->size *= 2;
}

static void plant(struct ranking *r, uint8_t lane)
{
    uint32_t *t = r->fewest[lane] = xcalloc(2 * r->size, sizeof *t);
    for (size_t i = 0; i < r->size; i++)
        t[r->size + i] = i < r->n ? count(r->by_rank[i], lane) : BUSY;
    for (size_t i = r->size - 1; i > 0; i--)
        t[i] = MIN(t[2 * i], t[2 * i + 1]);
}

static void recount(struct ranking *r, struct member *m)
{
    for (size_t lane = 0; lane <= MEMBER_LANES_MAX; lane++) {
        uint32_t *t = r->fewest[lane];
        if (!t)
            continue;
        size_t i = r->size + m->index;
        t[i] = count(m, (uint8_t)lane);
        while (i /= 2)
            t[i] = MIN(t[2 * i], t[2 * i + 1]);
    }
}

static void bring_up_to_date(struct ranking *r, uint8_t lane)
{
    for (struct list *l; (l = list_pop(&r->changed));)
        if (!r->stale)
            recount(r, CONTAINER_OF(l, struct member, recount));
    if (r->stale) {
        drop_trees(r);
        list_members(r);
        r->stale = false;
    }
    if (!r->fewest[lane])
        plant(r, lane);
}

// The index of the first member with this rank or a higher one.
static size_t find_index(const struct ranking *r, uint32_t rank)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->by_rank[middle]->rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The node with the fewest calls among all indexes from this one on, and the first of several. 0 = there are no such
// indexes.
static size_t best_from(const struct ranking *r, const uint32_t *t, size_t index)
{
    size_t best = 0;
    for (size_t i = r->size + index, end = 2 * r->size; i < end; i /= 2, end /= 2)
        if (i % 2) { // its parent also covers earlier indexes
            best = !best || t[i] < t[best] ? i : best;
            i++;
        }
    return best;
}

// The same among all indexes before it.
static size_t best_before(const struct ranking *r, const uint32_t *t, size_t index)
{
    size_t best = 0;
    if (index == r->size)
        return 1;
    for (size_t i = r->size + index, begin = r->size; begin < i; i /= 2, begin /= 2)
        if (i % 2) {
            i--; // it comes before the ones that were found
            best = !best || t[i] <= t[best] ? i : best;
        }
    return best;
}

const struct member *ranking_least(struct ranking *r, uint8_t lane, uint32_t from)
{
    bring_up_to_date(r, lane);
    const uint32_t *t = r->fewest[lane];
    size_t index = find_index(r, from), best = index < r->size ? best_from(r, t, index) : 0;
    size_t other = best_before(r, t, index);
    if (!best || (other && t[other] < t[best]))
        best = other;
    if (!best || t[best] == BUSY)
        return NULL;
    while (best < r->size)
        best = 2 * best + (t[2 * best] > t[best]);
    return r->by_rank[best - r->size];
}
