// SPDX-License-Identifier: Apache-2.0
// The PlacementGroup as the owner of a gang, and its status. Private to operator/reconcile.
#pragma once

#include "operator/reconcile/gang.h"
#include "operator/reconcile/placementgroup_pods.h"

// The state that the steps of one decision share.
struct placementgroup_decision {
    struct gang_decision gang; // first member: decision_of() relies on it
    const struct placementgroup_view *v;
    const struct placementgroup *plg;
    struct arena *a;
    struct plan *plan;
    struct bundles bundles;
    uint64_t template_hash; // of everything that the pods are made from, except the bundles
    struct placementgroup_pods pods;
};

// Call this when the other parts of the decision are known.
void placementgroup_gang_init(struct placementgroup_decision *d);
