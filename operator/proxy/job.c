// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/job.h"

#include "common/base/fiber.h"

static void work(void *ctx)
{
    struct job *j = ctx;
    j->work(j);
}

void job_begin(struct job *j, struct tenant *t)
{
    list_init(&j->link);
    j->tenant = tenant_ref(t);
    list_append(&t->jobs, &j->link);
    if (list_empty(&t->with_jobs))
        list_append(&t->router->with_jobs, &t->with_jobs);
}

// Returns the first job of the first namespace. The next namespace is then first.
static struct job *next_job(struct router *r)
{
    struct tenant *t = CONTAINER_OF(list_pop(&r->with_jobs), struct tenant, with_jobs);
    struct job *j = CONTAINER_OF(list_pop(&t->jobs), struct job, link);
    if (!list_empty(&t->jobs))
        list_append(&r->with_jobs, &t->with_jobs);
    return j;
}

void jobs_go_on(struct router *r)
{
    if (!r->job && list_empty(&r->with_jobs))
        return;
    if (!r->job) {
        r->job = next_job(r);
        r->fiber = fiber_new(work, r->job);
    }
    struct job *j = r->job;
    tenant_ends_turn(j->tenant); // if it did more, its other clients would wait until all steps are paid for
    if (!fiber_run(r->fiber, JOB_STEP))
        return;
    struct tenant *t = j->tenant;
    r->job = NULL;
    r->fiber = NULL;
    j->done(j);
    tenant_unref(t);
}

bool jobs_wait(const struct router *r)
{
    return r->job || !list_empty(&r->with_jobs);
}
