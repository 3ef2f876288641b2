// SPDX-License-Identifier: Apache-2.0
// Starts the next attempt, with new pods or in the present pods. After a failure, there is a pause before it.
#pragma once

#include "operator/reconcile/group_decision.h"

// Deletes all pods. On bundles, it stops the processes instead.
void attempt_delete_pods(struct group_decision *d);
// Begins a new attempt with new pods.
void attempt_begin(struct group_decision *d, const char *reason, const char *message);
// Begins a new attempt in the present pods. Only lost pods are replaced.
void attempt_begin_in_place(struct group_decision *d, const char *message);
// Gives up the present pods, which never all ran together. New pods follow in the same attempt.
void attempt_give_back(struct group_decision *d, const char *reason, const char *message);

int64_t attempt_pause_ms(const struct group_decision *d, uint64_t seed); // the whole pause
int64_t attempt_pause_left_ms(struct group_decision *d);  // the rest of the pause; 0 = there is none (any more)
const char *attempt_pause_text(struct group_decision *d); // call it only during a pause
