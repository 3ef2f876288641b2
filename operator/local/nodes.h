// SPDX-License-Identifier: Apache-2.0
// The logical nodes of a local run, and the GPUs that each gang uses on them. The operator's planner places groups, as
// in a cluster. Only CPUs and GPUs count.
#pragma once

#include "operator/api/workergroup.h"

enum { NODES_MAX = 256, NODES_GPUS_MAX = 256, NODES_CPUS_MAX = 1 << 20 };

struct nodes;

struct nodes *nodes_new(int n, int gpus_each, int cpus_each); // all arguments must be in their ranges
void nodes_free(struct nodes *n);                             // accepts NULL

const char *nodes_capacity(const struct nodes *n, struct arena *a); // the answer to group.capacity

struct nodes_gang {  // members that are placed together
    const char *uid; // of the object that the gang belongs to
    enum strategy strategy;
    const struct resources *const *needs; // of each member; equal ones share a pointer
    int32_t n;
};

struct nodes_assignment { // the places of a gang, one per member
    const char *const *nodes;
    const char *const *gpus; // numbers of GPUs on this machine, "0,1,4"; "" = none
};

// Gives the gang places, until nodes_leave(). Returns 0, ERR_UNAVAILABLE if there is room only when others leave, or
// ERR_LIMIT if there can never be room. *ret is in the arena.
int nodes_assign(struct nodes *n, const struct nodes_gang *gang, struct arena *a, struct nodes_assignment *ret,
                 struct err *err);
void nodes_leave(struct nodes *n, const char *uid); // does nothing if it has no place
