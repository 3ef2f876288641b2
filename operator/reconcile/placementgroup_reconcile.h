// SPDX-License-Identifier: Apache-2.0
// The decision about one PlacementGroup. Pure: the view is its input, the plan its output.
#pragma once

#include "operator/reconcile/placementgroup_view.h"

// Never fails: the conditions say what is wrong with the object.
void placementgroup_reconcile(const struct placementgroup_view *v, struct arena *a, struct plan *ret);
