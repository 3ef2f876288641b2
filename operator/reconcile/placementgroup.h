// SPDX-License-Identifier: Apache-2.0
// The decision about one PlacementGroup. Pure: what it sees is in the view, what it wants is in the plan.
#ifndef CADRE_RECONCILE_PLACEMENTGROUP_H
#define CADRE_RECONCILE_PLACEMENTGROUP_H

#include "operator/api/placementgroup.h"
#include "operator/reconcile/group.h"

struct placementgroup_view {
    const struct placementgroup *plg;
    const struct pod *const *pods; // all pods owned by this object (by UID), also terminating ones
    size_t n_pods;
    const struct agent_setup *setup; // NULL = not there yet: pods cannot be made
    const struct service *service;   // the Service of the gang's name, NULL if it is not known to exist
    bool tenants;                    // a WorkerGroup names it
    const struct cluster *cluster;
    const struct line *line; // as in struct group_view
    const struct group_memory *memory;
    int32_t moving; // as in struct group_view, of PlacementGroups
    int64_t now_ms; // Unix time
};

// Never fails: what is wrong with the object is said in its conditions.
void placementgroup_reconcile(const struct placementgroup_view *v, struct arena *a, struct plan *ret);

// Of what the dry runs of its pods depend on: struct action, and in struct group_memory dry_run_hash, then `further`. 0
// if it cannot be run.
size_t placementgroup_hashes(const struct placementgroup *plg, uint64_t ret[DRY_RUNS_FURTHER + 1]);

#endif
