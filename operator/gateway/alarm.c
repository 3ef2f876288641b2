// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/alarm.h"

#include "common/base/mem.h"
#include "operator/gateway/internal.h"

static int64_t now_ms(const struct gateway *g)
{
    return clock_mono_ms(loop_clock(g->loop));
}

void alarm_set(struct alarm *a, struct gateway *g, int64_t in_ms, void (*ring)(struct alarm *a))
{
    a->ring = ring;
    deadlines_add(&g->alarms, &a->deadline, now_ms(g) + in_ms);
}

void alarm_clear(struct alarm *a, struct gateway *g)
{
    deadlines_del(&g->alarms, &a->deadline);
}

void alarms_ring(struct gateway *g)
{
    int64_t now = now_ms(g);
    for (struct deadline *d; (d = deadlines_first(&g->alarms)) && d->at <= now;) {
        struct alarm *a = CONTAINER_OF(d, struct alarm, deadline);
        deadlines_del(&g->alarms, d);
        a->ring(a);
    }
}

int64_t alarms_wait_ms(const struct gateway *g)
{
    const struct deadline *first = deadlines_first(&g->alarms);
    return first ? MAX((int64_t)0, first->at - now_ms(g)) : -1;
}
