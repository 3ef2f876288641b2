// SPDX-License-Identifier: Apache-2.0
// The input of a decision about a PlacementGroup.
#pragma once

#include "operator/api/placementgroup.h"
#include "operator/reconcile/view.h"

struct placementgroup_view {
    const struct placementgroup *plg;
    struct gang_view gang; // its pods are all that this object owns (by UID)
    const bool *gpu_lost;  // of each pod that ends: its agent says that a GPU of it fell off the bus; NULL = of none
    bool used;             // a WorkerGroup names it
};
