// SPDX-License-Identifier: Apache-2.0
// The ends of a group: it succeeds, fails, or runs out of time. It also decides what is kept then, and for how long.
#pragma once

#include "operator/reconcile/group_decision.h"

bool finish_over(const struct group_decision *d); // the status says that it has succeeded or failed
bool finish_succeeded(const struct group_decision *d);
void finish_succeed(struct group_decision *d);
void finish_fail(struct group_decision *d, const char *reason, const char *message);
// Returns true if activeDeadlineSeconds have passed. If not, the plan looks again when they have.
bool finish_out_of_time(struct group_decision *d);
void finish_late(struct group_decision *d);
// Returns true if the group is over, and nothing in the spec asks for another attempt.
bool finish_stays(const struct group_decision *d);
void finish_stay(struct group_decision *d);
// The group stays over because its present spec cannot run. Accepted says why.
void finish_refused(struct group_decision *d);
