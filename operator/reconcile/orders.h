// SPDX-License-Identifier: Apache-2.0
// The text of commands to the agent of one pod, in the arena.
#pragma once

#include "operator/reconcile/group_decision.h"

const char *order_stop(struct group_decision *d, int32_t attempt, bool end);
const char *order_prepare(struct group_decision *d, int32_t index);
const char *order_start(struct group_decision *d, int32_t index,
                        bool restart); // RESTART contains only the failed processes
bool order_restarts(struct group_decision *d, int32_t index, int32_t local); // RESTART contains this process
