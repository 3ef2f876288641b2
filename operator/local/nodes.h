// SPDX-License-Identifier: Apache-2.0
// The logical nodes of a local run, and who has which of their GPUs. The operator's planner decides, as in a cluster;
// of what a template requests only CPUs and GPUs count here.
#ifndef CADRE_LOCAL_NODES_H
#define CADRE_LOCAL_NODES_H

#include "operator/api/workergroup.h"

enum { NODES_MAX = 256, NODES_GPUS_MAX = 256 };

struct nodes;

struct nodes *nodes_new(int n, int gpus_each); // both in their ranges
void nodes_free(struct nodes *n);              // accepts NULL

struct nodes_assignment {
    const char *const *nodes; // of each replica
    const char *gpus;         // numbers on this machine, in the order of the replicas: "0,1,4"; "" = none
};

// A place for all replicas of a group, which is theirs until nodes_leave(). 0; ERR_UNAVAILABLE: once others leave;
// ERR_LIMIT: never here; ERR_INVALID. The arena gets *ret.
int nodes_assign(struct nodes *n, const char *uid, const struct workergroup *g, struct arena *a,
                 struct nodes_assignment *ret, struct err *err);
void nodes_leave(struct nodes *n, const char *uid); // who has no place has none to leave

#endif
