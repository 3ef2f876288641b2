// SPDX-License-Identifier: Apache-2.0
// Randomness for jitter and tests (splitmix64, Steele et al. 2014): injected and seedable, never for secrets.
#pragma once

#include <stdint.h>

struct rand {
    uint64_t state;
};

void rand_seed(struct rand *r, uint64_t seed);
void rand_seed_system(struct rand *r); // from the kernel
uint64_t rand_u64(struct rand *r);
uint64_t rand_below(struct rand *r, uint64_t n);            // 0 <= x < n; 0 for n = 0
int64_t rand_range(struct rand *r, int64_t lo, int64_t hi); // lo <= x <= hi
