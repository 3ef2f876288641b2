// SPDX-License-Identifier: Apache-2.0
// Collects what the stores know about the PlacementGroups that a WorkerGroup runs on.
#pragma once

#include "operator/exec/placementgroup_users.h"
#include "operator/exec/reconciler.h"
#include "operator/reconcile/group_reconcile.h"

// Sets `placementgroups`, `placementgroup_services`, `pods`, `other_users` and `running` of the view. `groups` is what
// the operator remembers about WorkerGroups. `agents` is NULL if there are none.
void bundles_view_fill(const struct reconciler *groups, const struct placementgroup_users *users,
                       const struct agents *agents, const struct workergroup *wg, struct arena *a,
                       struct group_view *v);
