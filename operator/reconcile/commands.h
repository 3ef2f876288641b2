// SPDX-License-Identifier: Apache-2.0
// The commands to the agents of a group, each sent once, and how the group's processes are stopped. Runtime Agent.
#pragma once

#include "operator/reconcile/group_decision.h"

// Returns true if this command can be sent to the agent of this replica now. It is sent once. After a refusal it is
// sent again, but not immediately.
bool commands_may_tell(struct group_decision *d, int32_t index, uint8_t type, int32_t attempt);
void commands_tell(struct group_decision *d, int32_t index, uint8_t type, int32_t attempt, const char *body, int stage);
// Stops all processes of an older attempt.
void commands_stop_older(struct group_decision *d, int stage);
// The group has ended. The agents stop their processes and end with them, so that pods and logs stay, but take no room.
void commands_end(struct group_decision *d);
// On bundles: stops all processes of the group, whatever their attempt. The pods stay.
void commands_stop_all(struct group_decision *d);
