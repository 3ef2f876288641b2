// SPDX-License-Identifier: Apache-2.0
// Long work on the bytes of a call, for example JSON of megabytes that is split or joined, or thousands of
// references. The work is done in steps, one in each turn of the loop (fiber.h). The namespace pays for it with its
// part of each turn. One job runs at a time, because no quota is charged for the memory that it needs besides its
// input. One job of each namespace runs, then the next one of each.
#pragma once

#include "common/base/list.h"
#include "operator/proxy/tenant.h"

// Work that takes longer than a step is a job.
#define JOB_STEP ((size_t)128 << 10)

struct job {
    void (*work)(struct job *j); // runs in steps. It may only use what cannot change or be freed meanwhile
    void (*done)(struct job *j); // the work is over. The call that needed it may be gone
    // private
    struct list link; // in its namespace's list until it is begun
    struct tenant *tenant;
};

void job_begin(struct job *j, struct tenant *t); // the caller has set `work` and `done`
void jobs_go_on(struct router *r);               // runs one step
bool jobs_wait(const struct router *r);          // there is a job
