// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/exec/executor_case.h"

#include "tests/unit/support/object_json.h"
#include "tests/unit/support/store_json.h"

void executor_case_init(struct executor_case *c, struct loop *loop, struct kube_client *client, const char *group_json,
                        const char *node_json)
{
    *c = (struct executor_case){.metrics = metrics_new(), .group = object_of_json(KIND_WORKERGROUP, group_json)};
    stores_new(c->stores);
    c->x = (struct executor){
        .client = client,
        .stores = c->stores,
        .cluster = cluster_new(),
        .recorder = recorder_new(loop, client, "cadre.dev/operator", "test", c->metrics),
        .clock = loop_clock(loop),
    };
    const struct object *node = object_of_json(KIND_NODE, node_json);
    cluster_set_node(c->x.cluster, node_of(node));
    object_unref(node);
    observations_init(&c->observations, 1);
    plan_init(&c->plan, &c->arena);
}

void executor_case_done(struct executor_case *c)
{
    recorder_free(c->x.recorder);
    stores_free(c->stores);
    cluster_free(c->x.cluster);
    observations_done(&c->observations);
    object_unref(c->group);
    metrics_free(c->metrics);
    arena_done(&c->arena);
}

void executor_case_plan_pod(struct executor_case *c, const char *name, const char *body, int resource, int stage)
{
    struct resource *one = arena_new(&c->arena, struct resource);
    struct resources *requests = arena_new(&c->arena, struct resources);
    struct action *a = plan_add(&c->plan, ACTION_CREATE_POD, stage);
    *one = (struct resource){resource, 1000};
    *requests = (struct resources){one, 1};
    a->name = name;
    a->body = body;
    a->node = "n1";
    a->requests = requests;
}

struct action *executor_case_plan_dry_run(struct plan *plan, const char *body, uint64_t hash)
{
    struct action *a = plan_add(plan, ACTION_DRY_RUN, STAGE_FIRST);
    a->body = body;
    a->hash = hash;
    return a;
}

void executor_case_ended(void *ctx, const struct err *err)
{
    struct executor_case *c = ctx;
    c->done++;
    c->err = *err;
}

void executor_case_start(struct executor_case *c)
{
    execution_start(&c->x, c->group, workergroup_of(c->group)->status.incarnation, &c->arena, &c->plan,
                    &c->observations, executor_case_ended, c);
}
