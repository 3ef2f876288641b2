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

void shard_of_rank(const struct grid *mesh, const int *split, uint32_t rank, const uint64_t *shape, size_t n_dims,
                   struct shard *ret)
{
    *ret = (struct shard){.n_dims = n_dims};
    for (size_t d = 0; d < n_dims; d++)
        ret->to[d] = shape[d];
    for (size_t m = 0; m < mesh->n_dims; m++)
        if (split[m] >= 0)
            shard_narrow(&ret->from[split[m]], &ret->to[split[m]], grid_at(mesh, rank, (int)m), mesh->dims[m].size);
}

uint64_t shard_elements(const struct shard *s)
{
    uint64_t n = 1;
    for (size_t d = 0; d < s->n_dims; d++)
        n *= s->to[d] - s->from[d];
    return n;
}

bool shard_overlap(const struct shard *a, const struct shard *b, struct shard *ret)
{
    ret->n_dims = a->n_dims;
    for (size_t d = 0; d < a->n_dims; d++) {
        ret->from[d] = MAX(a->from[d], b->from[d]);
        ret->to[d] = MIN(a->to[d], b->to[d]);
        if (ret->from[d] >= ret->to[d])
            return false;
    }
    return true;
}

// Elements in front of those at `at` among the values of `s`.
static uint64_t offset_of(const struct shard *s, const uint64_t *at)
{
    uint64_t offset = 0;
    for (size_t d = 0; d < s->n_dims; d++)
        offset = offset * (s->to[d] - s->from[d]) + (at[d] - s->from[d]);
    return offset;
}

// How many of the last dimensions lie in one run in both: all of them but the first are whole in both.
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

void shard_copy(const struct shard *part, size_t size, const struct shard *from, const void *source,
                const struct shard *to, void *destination)
{
    uint64_t at[SHARD_DIMS_MAX], run = 1;
    size_t outer = part->n_dims - run_dims(part, from, to);
    for (size_t d = outer; d < part->n_dims; d++)
        run *= part->to[d] - part->from[d];
    if (!shard_elements(part))
        return;
    memcpy(at, part->from, sizeof at);
    for (;;) {
        memcpy((char *)destination + offset_of(to, at) * size, (const char *)source + offset_of(from, at) * size,
               run * size);
        size_t d = outer;
        while (d-- > 0) {
            if (++at[d] < part->to[d])
                break;
            at[d] = part->from[d];
        }
        if (d == (size_t)-1)
            return;
    }
}
