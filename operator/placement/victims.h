// SPDX-License-Identifier: Apache-2.0
// The pods of one node that could be evicted for a gang, and how many must be. When a pod is pinned to the node,
// kube-scheduler evicts others for it and chooses the victims. This file predicts its choice (without
// PodDisruptionBudgets, which kube-scheduler respects where it can).
#pragma once

#include "operator/placement/placement.h"
#include "operator/placement/room.h"

enum victims_who {
    VICTIMS_LOWER, // pods of lower priority: kube-scheduler evicts them
    VICTIMS_GANGS, // pods of other gangs, which end some day
    VICTIMS_ALL,   // all pods except the gang's own
};

struct victims {
    const struct occupant **items; // in the order in which kube-scheduler spares them: by priority, then by age
    size_t n;
};

// The victims for `gang`, whose pods have this `priority`. If pods of the gang itself are among the pods of lower
// priority, the node has no victims, because kube-scheduler could evict them first. Pods of another namespace are never
// the gang's own, even if they name its owner.
void victims_of(const struct room *r, enum victims_who who, int32_t priority, const struct gang *gang, struct arena *a,
                struct victims *ret);

int32_t victims_priority(const struct victims *v, size_t i);
// Index of the first victim with at most this priority.
size_t victims_below(const struct victims *v, int32_t priority);

// The requests of the victims from `first` on, as negative amounts.
struct resources victims_minus(const struct victims *v, size_t first, struct arena *a);

struct victims_cost {
    size_t n;         // pods that go
    int32_t priority; // the highest among them; INT32_MIN if none goes
};
// The cost for `times` times these requests, beside the pods that have to stay. The victims from `first` on are enough
// for it.
struct victims_cost victims_cost(const struct room *r, const struct victims *v, size_t first,
                                 const struct resources *requests, int64_t times);
