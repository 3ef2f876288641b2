// SPDX-License-Identifier: Apache-2.0
// How long a wait has lasted that began at a time of another clock: the API server's, or a kubelet's. That clock may be
// far off. Its time is used only for the part of the wait before this process watched. Everything after that is
// measured with our own clock, which observations_time corrects when somebody sets it.
#pragma once

#include "operator/reconcile/group_view.h"

// What is left of patience_ms, at most all of it; notes in the plan that it is waited for. A decision that does not
// wait for it ends the wait. token: not 0; the same as long as it is the same wait.
int64_t patience_left(const struct gang_memory *m, struct plan *p, enum patience_kind kind, int64_t token,
                      int64_t began_ms, int64_t patience_ms, int64_t now_ms);
// The same of a wait that is noted elsewhere.
int64_t patience_of(const struct gang_memory *m, enum patience_kind kind, int64_t token, int64_t began_ms,
                    int64_t patience_ms, int64_t now_ms, struct patience *ret);
// Of a decision that is put off: it waits for what the one before it waited for.
void patience_keep(const struct gang_memory *m, struct plan *p);

// Before the n-th try (n = 1, 2, ...): initial * 2^(n-1), at most max, plus up to a tenth of jitter drawn from seed.
int64_t patience_backoff_ms(int64_t initial_ms, int64_t max_ms, int32_t n, uint64_t seed);
