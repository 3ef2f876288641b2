// SPDX-License-Identifier: Apache-2.0
// Whether calls to a WorkerGroup may wait for it, judged by its object alone.
#pragma once

#include "operator/api/workergroup.h"

// Why they fail at once, since it does not get ready by waiting: it is refused as it stands, has ended, is suspended or
// being deleted, or has no agent. NULL = they may wait. Borrowed, or in the arena.
const char *calls_refusal(const struct workergroup *wg, struct arena *a);
// The reason of the condition Ready, which users see as STATUS; NULL = it has none. Borrowed.
const char *calls_reason(const struct workergroup *wg);
// What the condition Ready says while it is not true; NULL = nothing.
const char *calls_status(const struct workergroup *wg, struct arena *a);
