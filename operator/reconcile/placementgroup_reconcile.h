// SPDX-License-Identifier: Apache-2.0
// The decision about one PlacementGroup. Pure: the view is its input, the plan its output.
#pragma once

#include "operator/reconcile/placementgroup_view.h"

// Never fails: the conditions say what is wrong with the object.
void placementgroup_reconcile(const struct placementgroup_view *v, struct arena *a, struct plan *ret);

// The hashes of the dry runs of its pods (struct action): first dry_run_hash of struct gang_memory, then `further`.
// Returns their number, 0 if the PlacementGroup cannot run.
size_t placementgroup_hashes(const struct placementgroup *plg, uint64_t ret[DRY_RUNS_FURTHER + 1]);
