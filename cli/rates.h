// SPDX-License-Identifier: Apache-2.0
// Compares two successive answers of group.stats (docs/observe.md): the rates between them, and the sum over all
// replicas.
#pragma once

#include "cli/document.h"
#include "common/base/arena.h"

#include <stddef.h>
#include <stdint.h>

struct rate { // of a method
    const char *name;
    double calls, bytes; // per second
    int64_t ended, errors, in_flight;
    // For calls that ended; -1 = none did. A time above all bounds becomes the last bound.
    int64_t p50_us, p99_us;
    // For calls to several ranks: the rank that was farthest behind the median, in total; -1 = none.
    int64_t slowest;
    int64_t behind_us;      // its average delay when it was the last
    int64_t last, compared; // it was the last in `last` of `compared` calls
    // Since the proxy began
    int64_t total_errors;
};

// Two answers of one replica. `before` NULL: since the proxy began. If a count is lower than before, another proxy has
// answered, and all of the count is new. `fallback_us`: the time by our own clock, for that case.
struct rates_span {
    const cJSON *before, *now;
    int64_t fallback_us;
};

// Methods in the order in which they are found. In the arena; their names are those in the answers.
int rates_of(const struct rates_span *spans, size_t n_spans, struct arena *a, struct rate **ret, size_t *ret_n,
             struct err *err);
