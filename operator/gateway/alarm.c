// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/alarm.h"

#include "common/base/mem.h"

static int64_t now_ms(const struct alarms *all)
{
    return clock_mono_ms(loop_clock(all->loop));
}

void alarm_set(struct alarm *a, struct alarms *all, int64_t in_ms, void (*ring)(struct alarm *a))
{
    a->ring = ring;
    deadlines_add(&all->due, &a->deadline, now_ms(all) + in_ms);
}

void alarm_clear(struct alarm *a, struct alarms *all)
{
    deadlines_del(&all->due, &a->deadline);
}

void alarms_ring(struct alarms *all)
{
    int64_t now = now_ms(all);
    struct deadline *d;
    for (int i = 0; i < ALARMS_AT_ONCE && (d = deadlines_first(&all->due)) && d->at <= now; i++) {
        struct alarm *a = CONTAINER_OF(d, struct alarm, deadline);
        deadlines_del(&all->due, d);
        a->ring(a);
    }
}

int64_t alarms_wait_ms(const struct alarms *all)
{
    const struct deadline *first = deadlines_first(&all->due);
    return first ? MAX((int64_t)0, first->at - now_ms(all)) : -1;
}
