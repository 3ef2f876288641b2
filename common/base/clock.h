// SPDX-License-Identifier: Apache-2.0
// Time is injected, so that tests control it. `mono` never jumps and is for durations. `wall` is Unix time, for people
// and other machines. In milliseconds; measurements are in microseconds.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct clock {
    int64_t (*mono_ms)(const struct clock *c);
    int64_t (*wall_ms)(const struct clock *c);
    int64_t (*mono_us)(const struct clock *c);
};

extern const struct clock clock_system;

// Notices when the wall clock is set. Zero at first.
struct clock_watch {
    int64_t apart; // wall minus mono
    bool seen;
};

// Returns how far the wall clock was moved since the first call. Time that passed normally, and moves that earlier
// calls have returned, do not count. Moves of less than a second return 0, but they add up.
int64_t clock_watch_jump(struct clock_watch *w, int64_t wall_ms, int64_t mono_ms);

static inline int64_t clock_mono_ms(const struct clock *c)
{
    return c->mono_ms(c);
}

static inline int64_t clock_mono_us(const struct clock *c)
{
    return c->mono_us(c);
}

static inline int64_t clock_wall_ms(const struct clock *c)
{
    return c->wall_ms(c);
}
