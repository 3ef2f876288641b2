// SPDX-License-Identifier: Apache-2.0
// What the stores know about the PlacementGroups that a WorkerGroup runs on.
#pragma once

#include "operator/exec/placementgroup_users.h"
#include "operator/reconcile/group_reconcile.h"

struct bundle_stores {           // all borrowed
    struct store *const *stores; // by enum kind
    const struct placementgroup_users *users;
    // "host:port" of the rendezvous of another group, NULL = none. Borrowed. `key`: "namespace/name".
    const char *(*master_of)(void *ctx, const struct object *group, const char *key);
    void *ctx;
};

// Sets `placementgroups`, `placementgroup_services`, `pods`, `neighbours` and `running` of the view. agents NULL: there
// are none.
void bundles_view_fill(const struct bundle_stores *s, const struct agents *agents, const struct workergroup *wg,
                       struct arena *a, struct group_view *v);
