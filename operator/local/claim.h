// SPDX-License-Identifier: Apache-2.0
// The resources that a group or a PlacementGroup needs on the nodes of a local run, and the share of each process.
// Pure.
#pragma once

#include "operator/api/placementgroup.h"
#include "operator/local/nodes.h"

// The gang of a group with pods of its own: one for each replica. ERR_INVALID. `uid` is not copied.
int claim_of_group(const struct workergroup *g, const char *uid, struct arena *a, struct nodes_gang *ret,
                   struct err *err);
// The bundles of a PlacementGroup. ERR_INVALID, ERR_LIMIT.
int claim_of_placementgroup(const struct placementgroup *p, const char *uid, struct arena *a, struct nodes_gang *ret,
                            struct err *err);

struct claimed_bundle {
    size_t of; // spec.placement.groups
    int32_t bundle;
};

// The bundles that a group names, one for each replica, in the arena. named: those of spec.placement.groups.
// ERR_INVALID.
int claim_bundles(const struct workergroup *g, const struct placementgroup *const *named, struct arena *a,
                  struct claimed_bundle **ret, struct err *err);

struct claimed_gpus {
    const char *list;         // all of the group, as CUDA_VISIBLE_DEVICES has them: "0,1,4"
    const char *of_processes; // which of these are whose, counted from 0, as cadre-agent run --process-gpus: "0;1;2"
    bool own;                 // each process sees only its own
};

// `gpus`: of each replica (struct nodes_assignment). ERR_INVALID: it has fewer than one of its processes asks for.
int claim_gpus(const struct workergroup *g, const char *const *gpus, struct arena *a, struct claimed_gpus *ret,
               struct err *err);
