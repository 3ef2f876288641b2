// SPDX-License-Identifier: Apache-2.0
// The text of commands to the agent of one pod, in the arena.
#pragma once

#include "operator/reconcile/group_decision.h"

const char *command_text_stop(struct group_decision *d, int32_t attempt, bool end);
const char *command_text_prepare(struct group_decision *d, int32_t index);
const char *command_text_start(struct group_decision *d, int32_t index,
                               bool restart); // RESTART contains only the failed processes
bool command_text_restarts(struct group_decision *d, int32_t index, int32_t local); // RESTART contains this process
