// SPDX-License-Identifier: Apache-2.0
// The WorkerGroup as the owner of a gang, and its status.
#pragma once

#include "operator/reconcile/work.h"

// Call this when the other parts of the work are known.
void group_gang_init(struct work *w);
// Call this if some pods of the present incarnation are missing.
void group_gang_create(struct work *w);
