// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_create.h"

#include "operator/reconcile/gang_nodes.h"
#include "operator/reconcile/gang_place.h"
#include "operator/reconcile/gang_service.h"
#include "operator/reconcile/gang_verdict.h"
#include "operator/reconcile/reason.h"

static void wait_on(struct gang_decision *g, const char *reason, const char *message)
{
    const struct condition *ready = conditions_old(&g->conditions, READY);
    if (conditions_keep_reason(&g->conditions))
        gang_wait(g, ready->reason, ready->message);
    else
        gang_wait(g, reason, message);
}

static bool old_pods_go(struct gang_decision *g)
{
    if (!g->pods->n_gone)
        return false;
    gang_delete_gone(g, STAGE_FIRST);
    if (g->pods->own_failure) // counts as given back: if its pods fail again and again, the backoffs grow
        g->plan->gives_back = true;
    wait_on(g, REASON_TERMINATING, g->gone_text);
    return true;
}

static bool backing_off(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (g->begun)
        return false; // an interrupted creation continues
    if (m->retry_at_ms > g->v->now_ms && !g->edited) {
        plan_requeue(g->plan, m->retry_at_ms - g->v->now_ms);
        wait_on(g, REASON_BACKOFF, "the gang is planned again after a backoff");
        return true;
    }
    if (g->pause_ms <= 0)
        return false;
    plan_requeue(g->plan, g->pause_ms);
    gang_wait(g, REASON_BACKOFF, g->pause_text);
    return true;
}

// Accepted says why there can be no pods.
static void give_back_refused(struct gang_decision *g)
{
    const struct condition *c = &g->conditions.now[ACCEPTED];
    g->owner->give_back(g, c->reason, c->message);
}

static void create(struct gang_decision *g, const struct placement *placed)
{
    size_t n = 0;
    gang_service_add(g, g->service_first ? STAGE_FIRST : STAGE_SECOND);
    if (!g->owner->create(g, placed, &n)) {
        plan_init(g->plan, g->a); // all or none
        give_back_refused(g);
        return;
    }
    plan_requeue(g->plan, 0); // a refusal changes no object that would wake us
    gang_wait(
        g, REASON_CREATING,
        arena_printf(g->a, "%zu pod%s being created%s", n, n == 1 ? " is" : "s are", gang_place_victims(placed, g->a)));
}

static void place(struct gang_decision *g)
{
    struct placement placed;
    const char *why;
    if (!gang_nodes_find(g, &placed, &why)) {
        give_back_refused(g);
        return;
    }
    if (!why) {
        create(g, &placed);
        return;
    }
    // The pods that exist were created before a crash. Next to them, the others have no room.
    bool all_go = g->pods->existing && !g->pods->older;
    const char *reason = placed.verdict == VERDICT_INFEASIBLE && !all_go ? REASON_INFEASIBLE : REASON_INSUFFICIENT;
    g->owner->give_back(g, reason, why);
    g->plan->waits_for_room = !g->plan->gives_back;
}

static void wait_for_verdict(struct gang_decision *g)
{
    const struct condition *c = &g->conditions.now[ACCEPTED];
    gang_service_add(g, STAGE_FIRST);
    if (g->needs_setup && !g->v->setup)
        conditions_wait(&g->conditions, REASON_PENDING,
                        "waits for the operator's keys, which the agents of its pods need");
    else if (c->status == CONDITION_UNKNOWN && !g->pods->existing)
        conditions_wait(&g->conditions, c->reason, c->message);
    gang_settle(g);
}

// The API server refused a pod, so all pods that were created with it are given back.
static bool refusal_costs_the_gang(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (!g->refused)
        return false;
    gang_verdict_refusal(g);
    g->owner->give_back(g, m->refusal_reason, m->refusal_message);
    return true;
}

void gang_create(struct gang_decision *g)
{
    if (refusal_costs_the_gang(g) || old_pods_go(g))
        return;
    if (gang_service_taken(g)) {
        give_back_refused(g);
        return;
    }
    if (backing_off(g))
        return;
    switch (gang_verdict(g)) {
    case GANG_OK:
        place(g);
        break;
    case GANG_REFUSED:
        give_back_refused(g);
        break;
    case GANG_UNKNOWN:
        wait_for_verdict(g);
        break;
    }
}
