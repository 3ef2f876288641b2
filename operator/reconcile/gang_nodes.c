// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_nodes.h"

#include "operator/reconcile/gang_place.h"

static bool gang_of(struct gang_decision *g, bool beside, struct gang *ret)
{
    struct bundle *bundles = arena_array(g->a, (size_t)g->size, sizeof *bundles);
    *ret = (struct gang){
        .strategy = g->spec->strategy,
        .topology_key = g->spec->topology_key,
        .bundles = bundles,
        .n_bundles = (size_t)g->size,
        .avoid = g->v->memory->contended,
        .n_avoid = g->v->memory->n_contended,
    };
    return g->owner->bundles(g, beside, bundles);
}

static struct gang_place_request request_of(const struct gang_decision *g)
{
    return (struct gang_place_request){
        .cluster = g->v->cluster,
        .line = g->v->line,
        .owner = g->object,
        .scheduled = conditions_old(&g->conditions, SCHEDULED),
        .resumes = g->pods->existing,
        .now_ms = g->v->now_ms,
    };
}

bool gang_nodes_find(struct gang_decision *g, struct placement *ret, const char **ret_why)
{
    struct gang gang;
    struct gang_place_request request = request_of(g);
    if (!gang_of(g, true, &gang))
        return false;
    gang_place(&request, &gang, g->a, g->plan, ret);
    *ret_why = ret->verdict == VERDICT_PLACED ? NULL : gang_place_message(&request, &gang, ret, g->a);
    return true;
}

const char *gang_nodes_hopeless(struct gang_decision *g)
{
    struct gang gang;
    struct placement placed;
    if (!gang_of(g, false, &gang))
        return NULL;
    planner_place(g->v->cluster, &gang, g->a, &placed);
    if (placed.verdict != VERDICT_INFEASIBLE)
        return NULL;
    struct gang_place_request request = request_of(g);
    gang_place(&request, &gang, g->a, g->plan, &placed);
    g->plan->waits_for_room = true;
    return gang_place_message(&request, &gang, &placed, g->a);
}
