// SPDX-License-Identifier: Apache-2.0
// Creating the missing pods of a group: all that it takes is checked first, in the order in which a person would want to
// hear about it, and only then are pods created, all or none.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/placement/planner.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/work.h"

#include <string.h>

// Nothing may be created yet; the outcome says why.
static void wait_for(struct work *w, const char *reason, const char *message)
{
    outcome_wait(&w->outcome, reason, message);
    work_settle(w);
}

static bool stale_pods_go(struct work *w)
{
    const struct census *c = &w->census;
    if (!c->n_stale)
        return false;
    for (size_t i = 0; i < c->n_stale; i++) {
        int64_t left = -1;
        work_delete(w, c->stale[i], STAGE_FIRST);
        if (!census_node_lost(w->v, c->stale[i], &left) && left >= 0)
            plan_requeue(w->plan, left);
    }
    // A restart keeps saying why until its new pods are created.
    const struct condition *ready = outcome_old(w->wg, READY);
    bool restarting = ready && str_eq(ready->reason, REASON_RESTARTING);
    wait_for(w, restarting ? REASON_RESTARTING : REASON_TERMINATING,
             restarting ? ready->message
                        : arena_printf(w->a, "waits until %zu pod%s of an earlier attempt %s gone", c->n_stale,
                                       c->n_stale == 1 ? "" : "s", c->n_stale == 1 ? "is" : "are"));
    return true;
}

static uint64_t jitter_seed(const struct work *w)
{
    const char *uid = w->wg->obj.meta.uid;
    return str_hash(uid, strlen(uid)) + (uint64_t)w->outcome.attempt;
}

static bool backing_off(struct work *w)
{
    const struct group_memory *m = w->v->memory;
    const struct workergroup_status *s = &w->wg->status;
    if (w->census.existing)
        return false; // a creation that was interrupted goes on
    if (m->retry_at_ms > w->v->now_ms) {
        const struct condition *old = outcome_old(w->wg, READY);
        plan_requeue(w->plan, m->retry_at_ms - w->v->now_ms);
        wait_for(w, old ? old->reason : REASON_BACKOFF, old ? old->message : "");
        return true;
    }
    if (!s->restarts || !s->last_failure.time_ms)
        return false;
    int64_t at = s->last_failure.time_ms + group_backoff_ms((int64_t)w->wg->spec.backoff_initial_s * 1000,
                                                            (int64_t)w->wg->spec.backoff_max_s * 1000, s->restarts,
                                                            jitter_seed(w));
    if (at <= w->v->now_ms)
        return false;
    plan_requeue(w->plan, at - w->v->now_ms);
    wait_for(w, REASON_BACKOFF,
             arena_printf(w->a, "attempt %d begins after a backoff of %.1f s; restart %d was because %s of rank %d",
                          w->outcome.attempt, (double)(at - s->last_failure.time_ms) / 1000, s->restarts,
                          s->last_failure.reason ? s->last_failure.reason : FAILURE_ERROR, s->last_failure.rank));
    return true;
}

static void add_service(struct work *w)
{
    if (w->v->service)
        return;
    struct action *x = plan_add(w->plan, ACTION_CREATE_SERVICE, STAGE_FIRST);
    x->name = w->wg->obj.meta.name;
    x->body = group_service(w->wg, w->a);
}

static bool service_is_taken(struct work *w)
{
    const struct service *s = w->v->service;
    if (!s || str_eq(s->obj.meta.owner.uid, w->wg->obj.meta.uid))
        return false;
    const char *message = arena_printf(w->a,
                                       "a Service %s exists that does not belong to this WorkerGroup: delete it, or "
                                       "give the group another name",
                                       s->obj.meta.name);
    outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, REASON_NAME_CONFLICT, message);
    wait_for(w, REASON_NAME_CONFLICT, message);
    return true;
}

static bool render(struct work *w, struct group_pod *p, const char **ret_json)
{
    struct err err = ERR_INIT;
    p->attempt = w->outcome.attempt;
    p->incarnation = w->outcome.incarnation;
    p->spec_hash = w->spec_hash;
    if (group_pod_render(w->wg, p, w->a, ret_json, &err) == 0)
        return true;
    const char *message = arena_printf(w->a, "spec.template: %s", err.msg);
    outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, message);
    wait_for(w, REASON_INVALID_TEMPLATE, message);
    return false;
}

// The API server's own verdict on the template, with its defaults, limit ranges and injected containers.
static bool dry_run_pending(struct work *w)
{
    const struct group_memory *m = w->v->memory;
    if (m->dry_run_hash == w->spec_hash && m->dry_run == DRY_RUN_OK)
        return false;
    if (m->dry_run_hash == w->spec_hash && m->dry_run == DRY_RUN_REFUSED) {
        const char *message = arena_printf(w->a, "the API server refuses the template: %s", m->dry_run_message);
        outcome_set(&w->outcome, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE, message);
        if (w->census.existing)
            work_settle(w); // pods of an earlier, valid spec go on
        else
            wait_for(w, REASON_INVALID_TEMPLATE, message);
        return true;
    }
    struct group_pod pod = {.name = arena_printf(w->a, "%s-dry-run", w->wg->obj.meta.name)};
    const char *body;
    if (!render(w, &pod, &body))
        return true;
    struct action *x = plan_add(w->plan, ACTION_DRY_RUN, STAGE_FIRST);
    x->body = body;
    x->hash = w->spec_hash;
    add_service(w);
    if (!w->census.existing)
        outcome_wait(&w->outcome, REASON_CHECKING, "the API server checks the template");
    work_settle(w);
    return true;
}

static void create_missing(struct work *w, const struct placement *placed)
{
    const struct census *c = &w->census;
    const struct resources *requests = &w->v->memory->needs->requests;
    for (int32_t i = 0; i < c->replicas; i++) {
        if (c->current[i])
            continue;
        struct group_pod pod = {
            .index = i,
            .name = group_pod_name(w->wg, i, w->outcome.incarnation, w->a),
            .pin = placed->nodes[i],
        };
        const char *body;
        if (!render(w, &pod, &body))
            return;
        struct action *x = plan_add(w->plan, ACTION_CREATE_POD, STAGE_SECOND);
        x->name = pod.name;
        x->body = body;
        x->node = placed->nodes[i];
        x->requests = requests;
    }
}

static void place(struct work *w)
{
    const struct census *c = &w->census;
    const struct group_memory *m = w->v->memory;
    struct bundle *bundles = arena_array(w->a, (size_t)c->replicas, sizeof *bundles);
    for (int32_t i = 0; i < c->replicas; i++) {
        const struct pod *p = c->current[i];
        bundles[i] = (struct bundle){m->needs, p ? (p->node ? p->node : p->pin) : NULL};
    }
    struct gang gang = {
        .strategy = w->wg->spec.strategy,
        .topology_key = w->wg->spec.topology_key,
        .bundles = bundles,
        .n_bundles = (size_t)c->replicas,
        .avoid = m->contended,
        .n_avoid = m->n_contended,
    };
    struct placement placed;
    planner_place(w->v->cluster, &gang, w->a, &placed);
    if (placed.verdict == VERDICT_PLACED) {
        add_service(w);
        create_missing(w, &placed);
        outcome_wait(&w->outcome, REASON_CREATING, arena_printf(w->a, "%d pods are being created", c->replicas));
        work_settle(w);
        return;
    }
    const char *reason = placed.verdict == VERDICT_INFEASIBLE ? REASON_INFEASIBLE : REASON_INSUFFICIENT;
    if (c->existing) {
        work_roll_back(w, reason, placed.message);
        return;
    }
    w->plan->waits_for_room = true;
    wait_for(w, reason, placed.message);
}

void gang_create(struct work *w)
{
    const struct group_memory *m = w->v->memory;
    const struct census *c = &w->census;
    if (c->changed) { // only here to try the new template: the pods of the old one stay until it is accepted
        dry_run_pending(w);
        return;
    }
    if (m->refusal_reason && m->refusal_incarnation == c->incarnation &&
        !str_eq(m->refusal_reason, REASON_NAME_CONFLICT)) {
        work_roll_back(w, m->refusal_reason, m->refusal_message);
        return;
    }
    if (stale_pods_go(w) || service_is_taken(w) || backing_off(w) || dry_run_pending(w))
        return;
    outcome_set(&w->outcome, ACCEPTED, CONDITION_TRUE, REASON_VALID, "");
    place(w);
}
