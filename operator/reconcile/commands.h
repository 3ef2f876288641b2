// SPDX-License-Identifier: Apache-2.0
// The commands to the agents of a group, each sent once; and how the group's processes are stopped. Runtime Agent.
#pragma once

#include "operator/reconcile/work.h"

// Whether the agent of this replica can be told that now: once, and after a refusal not at once again.
bool commands_may_tell(struct work *w, int32_t index, uint8_t type, int32_t attempt);
void commands_tell(struct work *w, int32_t index, uint8_t type, int32_t attempt, const char *body, int stage);
// What runs of an older attempt is stopped.
void commands_stop_older(struct work *w, int stage);
// The group has ended: agents stop what runs and end with it, so that pods and logs stay, but take no room.
void commands_end(struct work *w, int stage);
// On bundles: all that runs of the group is stopped, whatever attempt it is of; the pods stay.
void commands_stop_all(struct work *w, int stage);
