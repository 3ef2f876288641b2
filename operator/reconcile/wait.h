// SPDX-License-Identifier: Apache-2.0
// Measures a wait whose beginning was noted with another clock, the one of the API server or a kubelet. That clock may
// be far off. Its time is used only for the part of the wait before this process watched. The rest is measured with our
// own clock, which observations_time() corrects when somebody sets it.
#pragma once

#include "operator/reconcile/group_view.h"

// Returns the rest of limit_ms, and notes the wait in the plan. The rest is never more than limit_ms. A decision that
// does not call this ends the wait. `token` is not 0. It stays the same during one wait.
int64_t wait_left(const struct gang_memory *m, struct plan *p, enum wait_kind kind, int64_t token, int64_t began_ms,
                  int64_t limit_ms, int64_t now_ms);
// The same, but notes the wait in *ret.
int64_t wait_of(const struct gang_memory *m, enum wait_kind kind, int64_t token, int64_t began_ms, int64_t limit_ms,
                int64_t now_ms, struct wait *ret);
// The pause before try n (n = 1, 2, ...): initial * 2^(n-1), at most max, plus up to a tenth of jitter drawn from seed.
int64_t wait_backoff_ms(int64_t initial_ms, int64_t max_ms, int32_t n, uint64_t seed);
enum { WAIT_RETRY_FIRST_MS = 1000, WAIT_RETRY_MAX_MS = 60 * 1000 }; // the first and the longest pause after a failure
