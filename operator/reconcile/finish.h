// SPDX-License-Identifier: Apache-2.0
// The ends of a group: it succeeds, fails, or runs out of time. Also what is kept of it then, and for how long.
#pragma once

#include "operator/reconcile/work.h"

bool finish_over(const struct work *w); // the status says that it has succeeded or failed
bool finish_succeeded(const struct work *w);
void finish_succeed(struct work *w);
void finish_fail(struct work *w, const char *reason, const char *message);
// Returns true if activeDeadlineSeconds have passed. If not, the plan looks again when they have.
bool finish_out_of_time(struct work *w);
void finish_late(struct work *w);
// Returns true if the group is over, and nothing in the spec asks for another attempt.
bool finish_stays(const struct work *w);
void finish_stay(struct work *w);
// The group stays over because its present spec cannot run. Accepted says why.
void finish_refused(struct work *w);
