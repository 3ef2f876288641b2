// SPDX-License-Identifier: Apache-2.0
// The input of a decision about a PlacementGroup.
#pragma once

#include "operator/api/placementgroup.h"
#include "operator/reconcile/view.h"

struct placementgroup_view {
    const struct placementgroup *plg;
    struct gang_view gang; // its pods are all that this object owns (by UID)
    const bool *gpu_lost;  // by pod: the pod ends, and its agent reports that a GPU fell off the bus; NULL = no pod
    bool used;             // some WorkerGroup names this PlacementGroup
};
