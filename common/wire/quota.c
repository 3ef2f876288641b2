// SPDX-License-Identifier: Apache-2.0
#include "common/wire/quota.h"

#include "common/base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define CACHE_MAX ((size_t)144 << 20) // the arguments and the answer of one of the longest calls
#define GROWN_MAX ((size_t)16 << 20)  // a body that grows in steps may have this much room too much

struct quota {
    size_t refs;
    size_t used, max;
    unsigned weight; // it may have this many times the bytes that are left in its parent; 0 = all of them
    struct quota *parent;
    struct block_cache cache; // only in the topmost quota
};

struct quota *quota_new(size_t max, struct quota *parent)
{
    struct quota *q = xcalloc(1, sizeof *q);
    *q = (struct quota){.refs = 1, .max = max, .parent = quota_ref(parent)};
    block_cache_init(&q->cache, MIN(max / 2, CACHE_MAX));
    return q;
}

struct quota *quota_new_fair(struct quota *parent, unsigned weight)
{
    struct quota *q = quota_new(parent->max, parent);
    q->weight = weight;
    return q;
}

struct quota *quota_ref(struct quota *q)
{
    if (q)
        q->refs++;
    return q;
}

void quota_unref(struct quota *q)
{
    while (q && --q->refs == 0) {
        struct quota *parent = q->parent;
        assert(q->used == 0);
        block_cache_done(&q->cache);
        free(q);
        q = parent;
    }
}

static size_t room(const struct quota *q)
{
    if (!q->weight)
        return q->max - q->used;
    size_t left = (q->parent->max - q->parent->used) * q->weight;
    return (left - MIN(left, q->used)) / (q->weight + 1); // each byte that it takes is no longer left in its parent
}

// Whether n <= room(q), without a division: every record asks.
static bool fits(const struct quota *q, size_t n)
{
    if (!q->weight)
        return n <= q->max - q->used;
    size_t left = q->parent->max - q->parent->used;
    return n <= left && q->used + n <= (left - n) * q->weight;
}

size_t quota_left(const struct quota *q)
{
    size_t left = SIZE_MAX;
    for (; q; q = q->parent)
        left = MIN(left, room(q));
    return left;
}

bool quota_charge(struct quota *q, size_t n)
{
    for (struct quota *up = q; up; up = up->parent) {
        if (!fits(up, n)) {
            for (struct quota *back = q; back != up; back = back->parent)
                back->used -= n;
            return false;
        }
        up->used += n;
    }
    return true;
}

void quota_refund(struct quota *q, size_t n)
{
    for (; q; q = q->parent) {
        assert(q->used >= n);
        q->used -= n;
    }
}

void quota_take_back(struct quota *q, size_t n)
{
    for (; q; q = q->parent)
        q->used += n;
}

size_t quota_used(const struct quota *q)
{
    return q ? q->used : 0;
}

struct block_cache *quota_block_cache(struct quota *q)
{
    while (q && q->parent)
        q = q->parent;
    return q ? &q->cache : NULL;
}

void quota_in_steps(struct quota *q)
{
    assert(!q->parent);
    q->cache.in_steps = true;
}

bool quota_is_behind(const struct quota *q)
{
    return block_cache_is_over(&q->cache);
}

void quota_go_on(struct quota *q)
{
    block_cache_go_on(&q->cache);
}

void quota_keep_body(struct quota *q, size_t body)
{
    assert(!q->parent);
    q->cache.max_bytes = MIN(q->max / 2, MAX(body + GROWN_MAX, CACHE_MAX));
}
