// SPDX-License-Identifier: Apache-2.0
// What the stores say of the PlacementGroups that a WorkerGroup runs on.
#ifndef CADRE_EXEC_POOLED_VIEW_H
#define CADRE_EXEC_POOLED_VIEW_H

#include "operator/reconcile/group.h"
#include "operator/runtime/store.h"

// Sets `pools` and `pods` of the view. `placementgroups` NULL: there are none.
void pooled_view_fill(const struct store *placementgroups, const struct store *pods, const struct workergroup *wg,
                      struct arena *a, struct group_view *v);

#endif
