// SPDX-License-Identifier: Apache-2.0
// The part of a WorkerGroup that still runs while its new spec is refused or not checked yet.
#pragma once

#include "operator/api/workergroup.h"

// The group as its status describes the present attempt, if that attempt is up, and the spec now asks for another
// number of ranks, for other bundles, or for another port there. NULL = the group runs as the spec says. The result is
// a view into `wg` in the arena: nobody can take a reference to it.
const struct workergroup *running_spec(const struct workergroup *wg, struct arena *a);
// Returns true if the present attempt was made from another spec.worker than the present one.
bool running_spec_worker_differs(const struct workergroup *wg, struct arena *a);
