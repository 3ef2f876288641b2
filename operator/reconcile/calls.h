// SPDX-License-Identifier: Apache-2.0
// Decides whether calls to a WorkerGroup may wait for it, from its object alone.
#pragma once

#include "operator/api/workergroup.h"

// Why calls fail at once, because waiting does not make the group ready. The group is refused as it is, has ended, is
// suspended or being deleted, or has no agent. NULL = calls may wait. Borrowed, or in the arena.
const char *calls_refusal(const struct workergroup *wg, struct arena *a);
// The reason of the condition Ready, which users see as STATUS; NULL = it has none. Borrowed.
const char *calls_reason(const struct workergroup *wg);
// The message of the condition Ready while it is not True; NULL = none.
const char *calls_status(const struct workergroup *wg, struct arena *a);
