// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_whole.h"

#include "common/base/str.h"
#include "operator/reconcile/gang_service.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

// A pod that is pinned to a node that does not exist. kube-scheduler would wait for the node for ever.
static const struct pod *pinned_astray(const struct gang_decision *g)
{
    for (size_t i = 0; i < g->pods->n_live; i++) {
        const struct pod *p = g->pods->live[i];
        if (p && !p->node && p->pin && !cluster_node(g->v->cluster, p->pin))
            return p;
    }
    return NULL;
}

static void not_bound_in_time(struct gang_decision *g, const char *given_back, const char *why)
{
    const struct gang_pods *pods = g->pods;
    for (size_t i = 0; i < pods->n_live; i++)
        if (pods->live[i] && !pods->live[i]->node && pods->live[i]->pin)
            plan_avoid(g->plan, pods->live[i]->pin);
    g->owner->give_back(g, REASON_BIND_TIMEOUT,
                        arena_printf(g->a, "%d of %zu pods were bound within %d s: %s deleted and planned again%s",
                                     pods->bound, pods->n_live, g->spec->timeout_s, given_back, why));
}

static void wait_until_bound(struct gang_decision *g)
{
    const struct gang_pods *pods = g->pods;
    const struct pod *p = pods->unschedulable, *astray = pinned_astray(g);
    const char *given_back = pods->older ? "the new ones are" : "all are";
    int64_t left = wait_left(g->v->memory, g->plan, WAIT_BIND, 1, pods->newest_ms, (int64_t)g->spec->timeout_s * 1000,
                             g->v->now_ms);
    const char *why =
        p && p->unschedulable_message ? arena_printf(g->a, "; %s: %s", p->obj.meta.name, p->unschedulable_message) : "";
    if (astray) {
        g->owner->give_back(
            g, REASON_BIND_TIMEOUT,
            arena_printf(g->a, "node %s, where pod %s was to go, no longer exists: %s deleted and planned again",
                         astray->pin, astray->obj.meta.name, given_back));
        return;
    }
    if (left <= 0) {
        not_bound_in_time(g, given_back, why);
        return;
    }
    plan_requeue(g->plan, left);
    gang_wait(g, REASON_BINDING, arena_printf(g->a, "%d of %zu pods are bound%s", pods->bound, pods->n_live, why));
}

// A creation that was given up as timed out may still have succeeded, so there can be superfluous pods.
bool gang_whole(struct gang_decision *g)
{
    gang_delete_gone(g, STAGE_SECOND);
    conditions_accept(&g->conditions);
    if (!g->on_bundles)
        gang_service_keep(g);
    if ((size_t)g->pods->bound == g->pods->n_live)
        return true;
    wait_until_bound(g);
    return false;
}

// If an image cannot be pulled, the reason alternates between the error and the wait for the next try. The error says
// more.
static const char *stuck_text(struct gang_decision *g)
{
    const struct container_status *s = g->pods->stuck_container;
    const struct condition *old = conditions_old(&g->conditions, READY);
    if (str_eq(s->reason, "ImagePullBackOff") && old && str_eq(old->reason, REASON_IMAGE))
        return old->message;
    return arena_printf(g->a, "pod %s, container %s: %s: %s", g->pods->stuck->obj.meta.name, s->name, s->reason,
                        s->message ? s->message : "see kubectl describe pod");
}

bool gang_whole_stuck(struct gang_decision *g)
{
    if (g->pods->stuck)
        conditions_set(&g->conditions, READY, CONDITION_FALSE, g->pods->stuck_reason, stuck_text(g));
    return g->pods->stuck;
}
