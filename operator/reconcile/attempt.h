// SPDX-License-Identifier: Apache-2.0
// How the next attempt begins: with new pods, or in the present pods; and the pause before it, after a failure.
#pragma once

#include "operator/reconcile/work.h"

// Deletes all pods; of a group on bundles it stops the processes.
void attempt_delete_pods(struct work *w, int stage);
// A new attempt with new pods.
void attempt_begin(struct work *w, const char *reason, const char *message);
// A new attempt in the pods that are there. Those that are lost are replaced.
void attempt_begin_in_place(struct work *w, const char *message);
// Gives the present pods up for a new set of the same attempt: they never ran all together.
void attempt_roll_back(struct work *w, const char *reason, const char *message);

int64_t attempt_pause_ms(const struct work *w, uint64_t seed); // from its beginning
// What is left of it, and all of it (ret_all may be NULL). 0 = there is none (any more).
int64_t attempt_pause_left_ms(struct work *w, int64_t *ret_all);
const char *attempt_pause_text(struct work *w);
