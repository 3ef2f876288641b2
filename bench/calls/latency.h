// SPDX-License-Identifier: Apache-2.0
// How long calls took.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct latency {
    uint32_t *us; // of the first ones
    size_t n, size;
    uint64_t count; // of all
};

void latency_add(struct latency *l, int64_t us);
// Calls a second; the median to ret_p50_us. Frees.
double latency_finish(struct latency *l, int64_t took_us, double *ret_p50_us);
