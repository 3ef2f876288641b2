// SPDX-License-Identifier: Apache-2.0
// Decides what to do when the processes of a local group have ended, by restartPolicy, maxRestarts, restartBackoff and
// failurePolicy of its spec.
#pragma once

#include "operator/api/workergroup.h"

struct restarts {
    uint64_t seed;   // of the jitter
    int32_t counted; // towards maxRestarts
    int32_t tries;   // in all
};

// Milliseconds until they are to be started again, which is noted; -1 = they are not: *ret_why says so, NULL where they
// have ended well.
int64_t restart_after(struct restarts *r, const struct workergroup_spec *s, int exit_code, const char **ret_why);
