// SPDX-License-Identifier: Apache-2.0
// The decision about one PlacementGroup. Pure: the view is its input, the plan its output.
#pragma once

#include "operator/reconcile/placementgroup_view.h"

// Never fails: what is wrong with the object is said in its conditions.
void placementgroup_reconcile(const struct placementgroup_view *v, struct arena *a, struct plan *ret);

// Of what the dry runs of its pods depend on: struct action, and in struct gang_memory dry_run_hash, then `further`. 0
// if it cannot be run.
size_t placementgroup_hashes(const struct placementgroup *plg, uint64_t ret[DRY_RUNS_FURTHER + 1]);
