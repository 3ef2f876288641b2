// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang.h"

#include "operator/reconcile/reason.h"

#include <string.h>

enum { STALE_MIRROR_MS = 1000 };

void gang_commit(struct gang_decision *g, bool at_once)
{
    struct status_writer w = {
        .draft = g->owner->draft,
        .ctx = g,
        .resource_version = g->object->meta.resource_version,
        .wanted_ms = g->v->memory->status_wanted_ms,
        .waiting_statuses = g->v->waiting_statuses,
        .now_ms = g->v->now_ms,
    };
    conditions_commit(&g->conditions, &w, at_once, g->a, g->plan);
}

void gang_settle(struct gang_decision *g)
{
    if (g->pods->look_again_ms >= 0)
        plan_requeue(g->plan, g->pods->look_again_ms);
    gang_commit(g, g->status_first);
}

void gang_wait(struct gang_decision *g, const char *reason, const char *message)
{
    conditions_wait(&g->conditions, reason, message);
    gang_settle(g);
}

void gang_postpone(struct gang_decision *g)
{
    memcpy(g->plan->waits, g->v->memory->waits, sizeof g->plan->waits);
    g->plan->waits[WAIT_STATUS] = g->pods->status;
    plan_requeue(g->plan, STALE_MIRROR_MS);
}

int32_t gang_next(int32_t n)
{
    return n < INT32_MAX ? n + 1 : n;
}

void gang_begin_incarnation(struct gang_decision *g, const char *reason, const char *message)
{
    conditions_wait(&g->conditions, reason, message);
    g->incarnation = gang_next(g->incarnation);
    gang_commit(g, true);
}

bool gang_invalid(struct gang_decision *g, const char *message)
{
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, arena_strdup(g->a, message));
    return false;
}

void gang_add_pod(struct gang_decision *g, const char *name, const char *body, const char *node,
                  const struct resources *requests)
{
    struct action *x = plan_add(g->plan, ACTION_CREATE_POD, STAGE_SECOND);
    x->name = name;
    x->body = body;
    x->node = arena_strdup(g->a, node);
    x->requests = requests;
}

void gang_delete_pod(struct gang_decision *g, const struct pod *p, int stage)
{
    int32_t node_lost_s = g->owner->node_lost_s ? g->owner->node_lost_s(g, p) : g->spec->node_lost_s;
    bool lost = pod_node_gone(g->v->cluster, p, node_lost_s, g->v->now_ms, NULL);
    if (!g->on_bundles || !(lost || pod_terminal(p)))
        plan_delete_pod(g->plan, p, lost, stage);
}

void gang_delete_gone(struct gang_decision *g, int stage)
{
    for (size_t i = 0; i < g->pods->n_gone; i++)
        gang_delete_pod(g, g->pods->gone[i], stage);
}
