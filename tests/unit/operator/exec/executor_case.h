// SPDX-License-Identifier: Apache-2.0
// An executor in tests, with the WorkerGroup ml/g, the node n1 and the plan that it is to carry out.
#pragma once

#include "operator/exec/executor.h"

struct executor_case {
    struct executor x;
    struct store *stores[KIND_COUNT];
    struct metrics *metrics;
    const struct object *group;
    struct observations observations;
    struct arena arena;
    struct plan plan;
    int done;       // how many executions have ended
    struct err err; // of the last one
};

// The client stays the caller's, which frees it before or after executor_case_done().
void executor_case_init(struct executor_case *c, struct loop *loop, struct kube_client *client, const char *group_json,
                        const char *node_json);
void executor_case_done(struct executor_case *c);

// Plans a pod on n1 that requests one of this resource, such as RESOURCE_GPU.
void executor_case_plan_pod(struct executor_case *c, const char *name, const char *body, int resource, int stage);
struct action *executor_case_plan_dry_run(struct plan *plan, const char *body, uint64_t hash);
void executor_case_start(struct executor_case *c); // carries out the plan; `done` and `err` say how it has ended
void executor_case_ended(void *ctx, const struct err *err); // for an execution that the test starts itself
