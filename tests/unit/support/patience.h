// SPDX-License-Identifier: Apache-2.0
// How long tests wait for what must come. It decides nothing: a test that works is over when what it waits for has
// happened, however busy its machine is.
#pragma once

#include "common/base/clock.h"

#include <stdbool.h>

#define PATIENCE_MS (120 * 1000)

// Takes turns until the condition holds. Where it does not, the test fails and shows what there is so far: a text,
// maybe an empty one. The condition may hold for a moment only, so it is not asked again.
#define TURN_UNTIL(turn, condition, so_far)                                    \
    do {                                                                       \
        int64_t end_ = clock_mono_ms(&clock_system) + PATIENCE_MS;             \
        bool met_;                                                             \
        while (!(met_ = !!(condition)) && clock_mono_ms(&clock_system) < end_) \
            turn;                                                              \
        if (!met_)                                                             \
            fail_msg("%s did not happen. %s", #condition, so_far);             \
    } while (0)
