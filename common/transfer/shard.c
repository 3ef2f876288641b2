// SPDX-License-Identifier: Apache-2.0
#include "common/transfer/shard.h"

#include "common/base/mem.h"

#include <string.h>

void shard_narrow(uint64_t *from, uint64_t *to, uint64_t i, uint64_t n)
{
    uint64_t len = *to - *from, part = len / n + (len % n != 0);
    uint64_t begin = part && i > len / part ? len : MIN(i * part, len);
    *to = *from + begin + MIN(part, len - begin);
    *from += begin;
}

void shard_of_rank(const struct mesh *mesh, const int *split, uint32_t rank, const uint64_t *shape, size_t n_dims,
                   struct shard *ret)
{
    *ret = (struct shard){.n_dims = n_dims};
    for (size_t d = 0; d < n_dims; d++)
        ret->to[d] = shape[d];
    for (size_t m = 0; m < mesh->n_dims; m++)
        if (split[m] >= 0)
            shard_narrow(&ret->from[split[m]], &ret->to[split[m]], mesh_at(mesh, rank, (int)m), mesh->dims[m].size);
}

uint64_t shard_elements(const struct shard *s)
{
    uint64_t n = 1;
    for (size_t d = 0; d < s->n_dims; d++)
        n *= s->to[d] - s->from[d];
    return n;
}

// The number of elements before those at `at` among the values of `s`.
static uint64_t offset_of(const struct shard *s, const uint64_t *at)
{
    uint64_t offset = 0;
    for (size_t d = 0; d < s->n_dims; d++)
        offset = offset * (s->to[d] - s->from[d]) + (at[d] - s->from[d]);
    return offset;
}

// How many of the last dimensions lie in one run in both blocks. All of them except the first must be whole in both.
static size_t run_dims(const struct shard *part, const struct shard *from, const struct shard *to)
{
    size_t n = MIN(part->n_dims, 1u);
    while (n && n < part->n_dims) {
        size_t d = part->n_dims - n;
        uint64_t len = part->to[d] - part->from[d];
        if (len != from->to[d] - from->from[d] || len != to->to[d] - to->from[d])
            break;
        n++;
    }
    return n;
}

static void place(struct shard_runs *r)
{
    r->from = offset_of(r->of[0], r->at) * r->size;
    r->to = offset_of(r->of[1], r->at) * r->size;
}

bool shard_runs_first(struct shard_runs *r, const struct shard *part, size_t size, const struct shard *from,
                      const struct shard *to)
{
    *r = (struct shard_runs){.len = size, .part = part, .of = {from, to}, .size = size};
    r->outer = part->n_dims - run_dims(part, from, to);
    for (size_t d = r->outer; d < part->n_dims; d++)
        r->len *= part->to[d] - part->from[d];
    if (!shard_elements(part))
        return false;
    memcpy(r->at, part->from, sizeof r->at);
    place(r);
    return true;
}

bool shard_runs_next(struct shard_runs *r)
{
    for (size_t d = r->outer; d-- > 0;) {
        if (++r->at[d] < r->part->to[d]) {
            place(r);
            return true;
        }
        r->at[d] = r->part->from[d];
    }
    return false;
}
