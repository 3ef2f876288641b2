// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <time.h>

enum { CLOCK_SET_MS = 1000 };

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t system_mono(const struct clock *c)
{
    (void)c;
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t system_wall(const struct clock *c)
{
    (void)c;
    return read_clock(CLOCK_REALTIME);
}

static int64_t system_mono_us(const struct clock *c)
{
    struct timespec ts;
    (void)c;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

const struct clock clock_system = {system_mono, system_wall, system_mono_us};

int64_t clock_watch_jump(struct clock_watch *w, int64_t wall_ms, int64_t mono_ms)
{
    int64_t jump = w->seen ? wall_ms - mono_ms - w->apart : 0;
    if (!w->seen)
        *w = (struct clock_watch){wall_ms - mono_ms, true};
    if (jump > -CLOCK_SET_MS && jump < CLOCK_SET_MS)
        return 0;
    w->apart += jump;
    return jump;
}
