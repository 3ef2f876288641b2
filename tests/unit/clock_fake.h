// SPDX-License-Identifier: Apache-2.0
// A clock that stands still until told otherwise.
#pragma once

#include "common/base/clock.h"
#include "common/base/mem.h"

struct clock_fake {
    struct clock clock;
    int64_t mono, wall;
    int64_t us; // beyond `mono`
};

static inline int64_t clock_fake_mono(const struct clock *c)
{
    return CONTAINER_OF(c, struct clock_fake, clock)->mono;
}

static inline int64_t clock_fake_wall(const struct clock *c)
{
    return CONTAINER_OF(c, struct clock_fake, clock)->wall;
}

static inline int64_t clock_fake_mono_us(const struct clock *c)
{
    const struct clock_fake *f = CONTAINER_OF(c, struct clock_fake, clock);
    return f->mono * 1000 + f->us;
}

static inline void clock_fake_init(struct clock_fake *f, int64_t mono_ms, int64_t wall_ms)
{
    *f = (struct clock_fake){{clock_fake_mono, clock_fake_wall, clock_fake_mono_us}, mono_ms, wall_ms, 0};
}

static inline void clock_fake_advance(struct clock_fake *f, int64_t ms) // moves both
{
    f->mono += ms;
    f->wall += ms;
}
