// SPDX-License-Identifier: Apache-2.0
// The pods of one node that could be evicted for a gang, and how many must be. For pods that are pinned to the node,
// kube-scheduler evicts, and chooses the victims. This predicts its choice (without PodDisruptionBudgets, which
// kube-scheduler respects where it can).
#pragma once

#include "operator/placement/placement.h"
#include "operator/placement/room.h"

enum leave {
    LEAVE_LOWER, // pods of lower priority: kube-scheduler evicts them
    LEAVE_GANGS, // pods of other gangs, which end some day
    LEAVE_ALL,   // whatever is not the gang's own
};

struct victims {
    const struct occupant **items; // as kube-scheduler spares them: high priority first, then what was created first
    size_t n;
};

// For `gang`; `priority`: of its pods. A node where pods of the gang itself are among those of lower priority has no
// victims: they could be taken first. A pod of another namespace is none of them, also if it names their owner.
void victims_of(const struct room *r, enum leave who, int32_t priority, const struct gang *gang, struct arena *a,
                struct victims *ret);

int32_t victims_priority(const struct victims *v, size_t i);
// The first of those whose priority is at most that.
size_t victims_below(const struct victims *v, int32_t priority);

// What those from `first` on hold, with a minus.
struct resources victims_minus(const struct victims *v, size_t first, struct arena *a);

struct toll {
    size_t n;         // pods that go
    int32_t priority; // the highest among them; INT32_MIN where none goes
};
// For `times` times these requests, beside what has to stay. All from `first` on are enough for it.
struct toll victims_toll(const struct room *r, const struct victims *v, size_t first, const struct resources *requests,
                         int64_t times);
