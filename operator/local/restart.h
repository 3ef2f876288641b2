// SPDX-License-Identifier: Apache-2.0
// Decides what happens when the processes of a local group have ended. It follows restartPolicy, maxRestarts,
// restartBackoff and failurePolicy of the spec.
#pragma once

#include "operator/api/workergroup.h"

struct restarts {
    uint64_t seed;   // for the jitter
    int32_t counted; // restarts that count towards maxRestarts
    int32_t tries;   // all restarts
};

// Returns the milliseconds until the next start, and counts that start. Returns -1 if there is none: *ret_why is the
// reason, or NULL if the processes have succeeded.
int64_t restart_after(struct restarts *r, const struct workergroup_spec *s, int exit_code, const char **ret_why);
