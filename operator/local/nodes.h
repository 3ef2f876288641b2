// SPDX-License-Identifier: Apache-2.0
// The logical nodes of a local run, and who uses which of their GPUs. The operator's planner places groups, as in a
// cluster. Only CPUs and GPUs count.
#pragma once

#include "operator/api/workergroup.h"

enum { NODES_MAX = 256, NODES_GPUS_MAX = 256, NODES_CPUS_MAX = 1 << 20 };

struct nodes;

struct nodes *nodes_new(int n, int gpus_each, int cpus_each); // all in their ranges
void nodes_free(struct nodes *n);                             // accepts NULL

const char *nodes_capacity(const struct nodes *n, struct arena *a); // what group.capacity answers

struct nodes_gang {  // what is to be placed together
    const char *uid; // of the object whose it is
    enum strategy strategy;
    const struct resources *const *needs; // of each; equal ones share the pointer
    int32_t n;
};

struct nodes_assignment { // of each of a gang
    const char *const *nodes;
    const char *const *gpus; // numbers on this machine, "0,1,4"; "" = none
};

// Places that are the gang's until nodes_leave(). 0; ERR_UNAVAILABLE: once others leave; ERR_LIMIT: never here. The
// arena gets *ret.
int nodes_assign(struct nodes *n, const struct nodes_gang *gang, struct arena *a, struct nodes_assignment *ret,
                 struct err *err);
void nodes_leave(struct nodes *n, const char *uid); // who has no place has none to leave
