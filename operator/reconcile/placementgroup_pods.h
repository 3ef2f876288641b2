// SPDX-License-Identifier: Apache-2.0
// The state of a PlacementGroup as its pods show it: counted once, then only read.
//
// The annotations of a pod name its bundles. The bundles belong to the pod while it lives. Pods of earlier incarnations
// were once all bound together, so they stay, whatever happens to other pods. Pods of the present incarnation stay too,
// once the status says Scheduled. Before that, they are created and given back all or none.
#pragma once

#include "operator/reconcile/bundles.h"
#include "operator/reconcile/gang_pods.h"
#include "operator/reconcile/placementgroup_view.h"

struct placementgroup_pods {
    const struct pod **pod_of; // by bundle, NULL = none
    struct gang_pods gang;     // `live` are the pods that have bundles, sorted by their first bundle
    bool *differs;             // by live pod: made from another template, or for bundles of another shape
    int32_t present, bound;    // bundles
    bool changed;              // one of the live pods differs
    const struct pod *lost;    // the first dead pod whose bundles are missing, and why it is dead
    const char *lost_reason;
    const char **avoided; // nodes of dead pods that have lost a GPU, each once
    size_t n_avoided;
};

void placementgroup_pods_take(const struct placementgroup_view *v, const struct bundles *b, uint64_t template_hash,
                              struct arena *a, struct placementgroup_pods *ret);
