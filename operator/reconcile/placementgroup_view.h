// SPDX-License-Identifier: Apache-2.0
// The input of a decision about a PlacementGroup.
#pragma once

#include "operator/api/placementgroup.h"
#include "operator/reconcile/view.h"

struct placementgroup_view {
    const struct placementgroup *plg;
    struct gang_view gang; // its pods are all that this object owns (by UID)
    bool used;             // a WorkerGroup names it
};
