// SPDX-License-Identifier: Apache-2.0
// The times that calls took.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct latency {
    uint32_t *us; // of the first calls
    size_t n, size;
    uint64_t count; // of all calls
};

void latency_add(struct latency *l, int64_t us);
// Returns the calls a second, and the median time in *ret_p50_us. Frees the times.
double latency_finish(struct latency *l, int64_t took_us, double *ret_p50_us);
