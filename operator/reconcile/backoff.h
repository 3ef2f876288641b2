// SPDX-License-Identifier: Apache-2.0
// The pause before the present attempt, after a failure.
#pragma once

#include "operator/reconcile/work.h"

int64_t backoff_all_ms(const struct work *w, uint64_t seed); // from its beginning
// What is left of it, and all of it (ret_all may be NULL). 0 = there is none (any more).
int64_t backoff_left_ms(struct work *w, int64_t *ret_all);
const char *backoff_text(struct work *w);
