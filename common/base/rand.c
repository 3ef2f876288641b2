// SPDX-License-Identifier: Apache-2.0
#include "common/base/rand.h"

#include <sys/random.h>
#include <time.h>

void rand_seed(struct rand *r, uint64_t seed)
{
    r->state = seed;
}

void rand_seed_system(struct rand *r)
{
    if (getrandom(&r->state, sizeof r->state, 0) != (ssize_t)sizeof r->state)
        r->state = (uint64_t)time(NULL);
}

uint64_t rand_u64(struct rand *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t rand_below(struct rand *r, uint64_t n)
{
    return n ? (uint64_t)(((unsigned __int128)rand_u64(r) * n) >> 64) : 0;
}

int64_t rand_range(struct rand *r, int64_t lo, int64_t hi)
{
    uint64_t span = (uint64_t)hi - (uint64_t)lo; // unsigned: the widest range overflows int64_t
    return (int64_t)((uint64_t)lo + (span == UINT64_MAX ? rand_u64(r) : rand_below(r, span + 1)));
}
