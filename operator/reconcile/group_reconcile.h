// SPDX-License-Identifier: Apache-2.0
// The decision about one WorkerGroup. Pure: the view is its input, the plan its output.
#pragma once

#include "operator/reconcile/group_view.h"

// Never fails: the conditions say what is wrong with the object.
void group_reconcile(const struct group_view *v, struct arena *a, struct plan *ret);
