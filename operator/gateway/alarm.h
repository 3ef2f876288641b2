// SPDX-License-Identifier: Apache-2.0
// A timer that can be taken back, embedded in its owner.
#pragma once

#include "common/base/deadline.h"
#include "common/base/loop.h"

enum { ALARMS_AT_ONCE = 64 };

struct alarm {
    struct deadline deadline;
    void (*ring)(struct alarm *a); // once; may set it again
};

struct alarms { // all of one loop
    struct loop *loop;
    struct deadlines due;
};

void alarm_set(struct alarm *a, struct alarms *all, int64_t in_ms, void (*ring)(struct alarm *a)); // or moves it
void alarm_clear(struct alarm *a, struct alarms *all);
void alarms_ring(struct alarms *all);             // those that are due; what is more than ALARMS_AT_ONCE waits
int64_t alarms_wait_ms(const struct alarms *all); // until the next, -1 = none
