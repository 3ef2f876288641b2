// SPDX-License-Identifier: Apache-2.0
// The answer to the failure of a rank or the loss of a pod. The rules of failurePolicy, the restart policy and the
// remaining restarts decide whether and how the group starts again, and how long it waits before.
#pragma once

#include "operator/reconcile/group_decision.h"

// Answers the failure of a rank or the loss of a pod.
void failure_answer(struct group_decision *d);
// Returns "rank 1 (pod x-1-0 on n1) failed with exit code 3: Error: its last line".
const char *failure_text(struct group_decision *d);
