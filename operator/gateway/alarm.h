// SPDX-License-Identifier: Apache-2.0
// A timer that can be cleared. It is embedded in its owner.
#pragma once

#include "common/base/deadline.h"
#include "common/base/loop.h"

enum { ALARMS_AT_ONCE = 64 };

struct alarm {
    struct deadline deadline;
    void (*ring)(struct alarm *a); // called once; it may set the alarm again
};

struct alarms { // all alarms of one loop
    struct loop *loop;
    struct deadlines due;
};

// Sets it, or moves it.
void alarm_set(struct alarm *a, struct alarms *all, int64_t in_ms, void (*ring)(struct alarm *a));
void alarm_clear(struct alarm *a, struct alarms *all);
void alarms_ring(struct alarms *all);             // rings those that are due, at most ALARMS_AT_ONCE; the others wait
int64_t alarms_wait_ms(const struct alarms *all); // until the next one, -1 = there is none
