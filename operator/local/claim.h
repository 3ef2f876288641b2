// SPDX-License-Identifier: Apache-2.0
// Computes the resources that a group or a PlacementGroup needs on the nodes of a local run, and the share of each
// process. Pure.
#pragma once

#include "operator/api/placementgroup.h"
#include "operator/local/nodes.h"

// Returns the gang of a group with its own pods: one member for each replica. `uid` is not copied. Errors: ERR_INVALID.
int claim_of_group(const struct workergroup *g, const char *uid, struct arena *a, struct nodes_gang *ret,
                   struct err *err);
// Returns the gang of a PlacementGroup: one member for each bundle. Errors: ERR_INVALID, ERR_LIMIT.
int claim_of_placementgroup(const struct placementgroup *p, const char *uid, struct arena *a, struct nodes_gang *ret,
                            struct err *err);

struct claimed_bundle {
    size_t of; // index in spec.placement.groups
    int32_t bundle;
};

// Returns the bundles that a group names, one for each replica, in the arena. `named` contains the PlacementGroups of
// spec.placement.groups. Errors: ERR_INVALID.
int claim_bundles(const struct workergroup *g, const struct placementgroup *const *named, struct arena *a,
                  struct claimed_bundle **ret, struct err *err);

struct claimed_gpus {
    const char *list; // all GPUs of the group, in the form of CUDA_VISIBLE_DEVICES: "0,1,4"
    // The GPUs of each process, as positions in `list`, for cadre-agent run --process-gpus: "0;1;2".
    const char *of_processes;
    bool own; // each process sees only its own GPUs
};

// `gpus` are the GPUs of each replica (struct nodes_assignment). ERR_INVALID: a replica has fewer GPUs than one of its
// processes needs.
int claim_gpus(const struct workergroup *g, const char *const *gpus, struct arena *a, struct claimed_gpus *ret,
               struct err *err);
