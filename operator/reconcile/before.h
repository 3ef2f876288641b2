// SPDX-License-Identifier: Apache-2.0
// What still runs of a WorkerGroup while its new spec is refused or not checked yet.
#pragma once

#include "operator/api/workergroup.h"

// The group as its present attempt was made, by its status, where that is up and the spec asks by now for another
// number of ranks, for other bundles, or for another port there. NULL = as the spec says. A view into `wg` in the
// arena: nobody can take a reference of it.
const struct workergroup *group_before(const struct workergroup *wg, struct arena *a);
// Whether the present attempt was made from another spec.worker than the present one.
bool group_worker_differs(const struct workergroup *wg, struct arena *a);
