// SPDX-License-Identifier: Apache-2.0
// Long work on bytes that a call holds: JSON of megabytes that is split or joined, thousands of references. It is done
// in steps, one in a turn of the loop (fiber.h), for which its namespace pays with its turns. One job is at work at a
// time, because what a job needs besides its input is not charged to anybody. Namespaces take turns, job by job.
#pragma once

#include "common/base/list.h"
#include "operator/proxy/tenant.h"

// What takes longer than a step is a job.
#define JOB_STEP ((size_t)128 << 10)

struct job {
    void (*work)(struct job *j); // in steps: it may use nothing that can change or go meanwhile
    void (*done)(struct job *j); // the work is over; who wanted it may have gone
    // private
    struct list link; // in its namespace's list until it is begun
    struct tenant *tenant;
};

void job_begin(struct job *j, struct tenant *t); // `work` and `done` are set
void jobs_go_on(struct router *r);               // a step
bool jobs_wait(const struct router *r);          // there is one
