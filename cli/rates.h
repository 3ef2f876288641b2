// SPDX-License-Identifier: Apache-2.0
// What two successive answers of group.stats (docs/observe.md) say about the time between them, and the sum over all
// replicas.
#pragma once

#include "cli/document.h"
#include "common/base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct rate { // of a method
    const char *name;
    double calls, bytes; // a second
    int64_t ended, errors, in_flight;
    // Of calls that ended; -1 = none did. What is above all bounds is given as the last bound.
    int64_t p50_us, p99_us;
    // Of calls to several ranks: who was the farthest behind the median, in all; -1 = nobody.
    int64_t slowest;
    int64_t behind_us;      // on average, where it was the last
    int64_t last, compared; // in how many of how many it was
    // Ever
    int64_t total_errors;
};

// Two answers of one replica. `before` NULL: since the proxy began. Where a count is less than before, another proxy
// has answered, and all of it counts. `fallback_us`: how long it was by our own clock, for that case.
struct rates_span {
    const cJSON *before, *now;
    int64_t fallback_us;
};

// Methods in the order in which they are met. In the arena; their names are those of the answers.
int rates_of(const struct rates_span *spans, size_t n_spans, struct arena *a, struct rate **ret, size_t *ret_n,
             struct err *err);
