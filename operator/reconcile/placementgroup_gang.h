// SPDX-License-Identifier: Apache-2.0
// What a PlacementGroup requires of its gang, and the PlacementGroup's status. Private to operator/reconcile.
#pragma once

#include "operator/reconcile/gang.h"
#include "operator/reconcile/placementgroup_pods.h"

// What the steps of one decision share.
struct placementgroup_decision {
    struct gang_decision gang; // first: its owner finds the rest by it
    const struct placementgroup_view *v;
    const struct placementgroup *plg;
    struct arena *a;
    struct plan *plan;
    struct bundles bundles;
    uint64_t template_hash; // of what the pods are made from, but for the bundles
    struct placementgroup_pods pods;
};

// From what the decision knows already.
void placementgroup_gang_init(struct placementgroup_decision *d);
// What the API server is asked about: a pod with a bundle of each shape, because what is allowed for the one (a
// LimitRange, a policy) may be refused for the other. Of more shapes than can be remembered the creation tells.
size_t placementgroup_gang_trials(const struct placementgroup_decision *d, struct gang_trial **ret);
