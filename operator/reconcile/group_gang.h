// SPDX-License-Identifier: Apache-2.0
// The WorkerGroup as the owner of a gang, and its status.
#pragma once

#include "operator/reconcile/group_decision.h"

// Call this when the other parts of the decision are known.
void group_gang_init(struct group_decision *d);
// Call this if some pods of the present incarnation are missing.
void group_gang_create(struct group_decision *d);
