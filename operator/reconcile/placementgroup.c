// SPDX-License-Identifier: Apache-2.0
// The decision tree of a PlacementGroup. Each step sees the same snapshot and ends the decision.
#include "operator/reconcile/placementgroup.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/accept.h"
#include "operator/reconcile/census.h"
#include "operator/reconcile/hold.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/patience.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <string.h>

enum { STALE_CACHE_MS = 1000 };

static void accept(struct hold *h)
{
    hold_set(h, HOLD_ACCEPTED, CONDITION_TRUE, REASON_VALID, "");
}

// Pods of the next incarnation join those that stay. The status goes first, so that a crash in between is picked up
// where it happened.
static void begin_incarnation(struct hold *h, const char *reason, const char *message)
{
    h->incarnation = h->incarnation < INT32_MAX ? h->incarnation + 1 : h->incarnation;
    hold_wait(h, reason, message);
    hold_commit(h, true);
    for (size_t i = 0; i < h->reservation.n_dead; i++)
        hold_delete(h, h->reservation.dead[i], STAGE_SECOND);
    h->plan->rolls_back = h->reservation.own_failure;
}

static const char *missing_text(struct hold *h)
{
    const struct bundles *b = &h->bundles;
    int32_t *items = arena_array(h->a, (size_t)b->n, sizeof *items);
    size_t n = 0;
    for (int32_t i = 0; i < b->n; i++)
        if (!h->reservation.holder[i])
            items[n++] = i;
    return arena_printf(h->a, "%s %s", n == 1 ? "bundle" : "bundles", bundles_text(items, n, h->a));
}

// They were all bound: what is missing now was lost, or is new in the spec.
static void lost_some(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    const char *which = missing_text(h);
    accept(h);
    if (r->lost) {
        const char *node = r->lost->node ? arena_printf(h->a, " on %s", r->lost->node) : "";
        begin_incarnation(h, REASON_RESTARTING,
                          arena_printf(h->a, "pod %s%s is lost: %s; planned again: %s", r->lost->obj.meta.name, node,
                                       r->lost_reason, which));
    } else if (h->plg->status.bundles < h->bundles.n) {
        begin_incarnation(h, REASON_PENDING, arena_printf(h->a, "to be added: %s", which));
    } else {
        begin_incarnation(h, REASON_RESTARTING, arena_printf(h->a, "without a pod, planned again: %s", which));
    }
}

// Pods of an earlier incarnation, which stay.
static bool any_older(const struct reservation *r)
{
    for (size_t i = 0; i < r->n_live; i++)
        if (pod_label_number(r->live[i], LABEL_INCARNATION) != r->incarnation)
            return true;
    return false;
}

static void given_back_late(struct hold *h, const char *why)
{
    const struct reservation *r = &h->reservation;
    struct plan *p = h->plan;
    p->contended = arena_array(h->a, r->n_live, sizeof *p->contended);
    for (size_t i = 0; i < r->n_live; i++)
        if (!r->live[i]->node && r->live[i]->pin)
            p->contended[p->n_contended++] = arena_strdup(h->a, r->live[i]->pin);
    hold_roll_back(h, REASON_BIND_TIMEOUT,
                   arena_printf(h->a, "%zu of %zu pods were bound within %d s: %s given back and planned again%s",
                                r->bound_pods, r->n_live, h->plg->spec.timeout_s,
                                any_older(r) ? "the new ones are" : "all are", why));
}

// kube-scheduler would wait for the node of that pod for ever.
static void given_back_astray(struct hold *h, const struct pod *p)
{
    hold_roll_back(
        h, REASON_BIND_TIMEOUT,
        arena_printf(h->a, "node %s, where pod %s was to go, is not there any more: %s given back and planned again",
                     p->pin, p->obj.meta.name, any_older(&h->reservation) ? "the new ones are" : "all are"));
}

static void binding(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    const struct pod *p = r->unschedulable;
    int64_t patience = (int64_t)h->plg->spec.timeout_s * 1000;
    int64_t left = patience_left(h->v->memory, h->plan, PATIENCE_BIND, 1, r->newest_ms, patience, h->v->now_ms);
    const char *why =
        p && p->unschedulable_message ? arena_printf(h->a, "; %s: %s", p->obj.meta.name, p->unschedulable_message) : "";
    for (size_t i = 0; i < r->n_live; i++)
        if (census_pinned_astray(h->v->cluster, r->live[i])) {
            given_back_astray(h, r->live[i]);
            return;
        }
    if (left <= 0) {
        given_back_late(h, why);
        return;
    }
    hold_wait(h, REASON_BINDING, arena_printf(h->a, "%zu of %zu pods are bound%s", r->bound_pods, r->n_live, why));
    plan_requeue(h->plan, left);
    hold_commit(h, false);
}

// An image that cannot be pulled alternates between the error and the wait for the next try; the error says more.
static const char *stuck_text(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    const struct container_status *s = r->stuck_container;
    const struct condition *old = hold_old(h, HOLD_READY);
    if (str_eq(s->reason, "ImagePullBackOff") && old && str_eq(old->reason, REASON_IMAGE))
        return old->message;
    return arena_printf(h->a, "pod %s, container %s: %s: %s", r->stuck->obj.meta.name, s->name, s->reason,
                        s->message ? s->message : "see kubectl describe pod");
}

static void show(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    hold_set(h, HOLD_SCHEDULED, CONDITION_TRUE, REASON_BOUND,
             arena_printf(h->a, "all %d bundles are bound, on %zu pod%s", h->bundles.n, r->n_live,
                          r->n_live == 1 ? "" : "s"));
    if (r->stuck)
        hold_set(h, HOLD_READY, CONDITION_FALSE, r->stuck_reason, stuck_text(h));
    else if (r->ready_pods < r->n_live)
        hold_set(h, HOLD_READY, CONDITION_FALSE, REASON_STARTING,
                 arena_printf(h->a, "%zu of %zu pods are ready", r->ready_pods, r->n_live));
    else
        hold_set(h, HOLD_READY, CONDITION_TRUE, REASON_RUNNING,
                 arena_printf(h->a, "all %d bundles are ready", h->bundles.n));
}

// Every bundle has its pod. What is left over goes: the tail of a group that shrank, or a creation that was given up as
// timed out and came through after all.
static void whole(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    for (size_t i = 0; i < r->n_dead; i++)
        hold_delete(h, r->dead[i], STAGE_SECOND);
    accept(h);
    hold_keep_service(h);
    if (r->bound < h->bundles.n) {
        binding(h);
        return;
    }
    show(h);
    hold_commit(h, false);
}

// Every bundle is held, but as an earlier spec asked; so that is what the conditions go on speaking of.
static bool show_earlier(struct hold *h)
{
    static const enum hold_condition spoken_of[] = {HOLD_SCHEDULED, HOLD_READY};
    const struct reservation *r = &h->reservation;
    if (!r->held || r->held < h->bundles.n || r->bound < r->held)
        return false;
    show(h);
    for (size_t i = 0; i < ARRAY_LEN(spoken_of); i++) {
        const struct condition *old = hold_old(h, spoken_of[i]);
        if (old)
            h->conditions[spoken_of[i]].observed_generation = old->observed_generation;
    }
    return true;
}

// What is held from an earlier spec stays where the present one is refused; what was never whole is given back.
static void keep_earlier(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    const struct condition *c = &h->conditions[HOLD_ACCEPTED];
    if (show_earlier(h)) {
        struct condition *ready = &h->conditions[HOLD_READY];
        if (!r->stuck) // which is told first, and may be told as it was before
            ready->message = arena_printf(h->a, "%s as the earlier spec asked; the present one is refused: %s",
                                          ready->message, c->message);
        hold_commit(h, false);
        return;
    }
    if (!hold_was(h, HOLD_SCHEDULED)) {
        hold_roll_back(h, c->reason, c->message);
        return;
    }
    if (h->bundles.n)
        hold_set(h, HOLD_READY, CONDITION_FALSE, c->reason,
                 arena_printf(h->a,
                              "%d of %d bundles are held, as an earlier spec asked; the present one is refused: %s",
                              r->held, h->bundles.n, c->message));
    hold_commit(h, false);
}

// Some pods were made from an earlier spec. A template that the API server would refuse, or bundles that no node could
// ever take, must not cost those that run, so they are tried first. Then only those that differ are replaced; those of
// a gang that never was whole are all given back.
static void spec_changed(struct hold *h)
{
    const struct reservation *r = &h->reservation;
    bool was_whole = hold_was(h, HOLD_SCHEDULED);
    enum hold_verdict verdict = hold_judge(h);
    if (verdict == HOLD_REFUSED || (verdict == HOLD_OK && was_whole && hold_hopeless(h))) {
        keep_earlier(h);
        return;
    }
    if (verdict == HOLD_UNKNOWN) {
        show_earlier(h);
        hold_commit(h, false);
        return;
    }
    h->incarnation = h->incarnation < INT32_MAX ? h->incarnation + 1 : h->incarnation;
    hold_wait(h, REASON_TERMINATING, "the spec has changed: new pods replace those that differ from it");
    hold_commit(h, true);
    for (size_t i = 0; i < r->n_live; i++)
        if (r->differs[i] || (!was_whole && pod_label_number(r->live[i], LABEL_INCARNATION) == r->incarnation))
            hold_delete(h, r->live[i], STAGE_SECOND);
}

// The present spec cannot be had.
static void refuse(struct hold *h, const struct refusal *refusal)
{
    hold_set(h, HOLD_ACCEPTED, CONDITION_FALSE, refusal->reason, refusal->message);
    if (h->v->n_pods) {
        keep_earlier(h);
        return;
    }
    hold_wait(h, refusal->reason, refusal->message);
    hold_commit(h, false);
}

static bool expand(struct hold *h, struct refusal *ret)
{
    struct template_facts facts;
    struct err err = ERR_INIT;
    if (bundles_expand(&h->plg->spec, h->a, &h->bundles, &err) < 0) {
        *ret = (struct refusal){REASON_INVALID_TEMPLATE, arena_strdup(h->a, err.msg)};
        h->bundles = (struct bundles){0};
        return false;
    }
    if (bundles_check(&h->bundles, &err) < 0) {
        *ret = (struct refusal){REASON_INVALID_TEMPLATE, arena_strdup(h->a, err.msg)};
        return false;
    }
    if (!placementgroup_accept(h->plg, h->a, ret, &facts))
        return false;
    h->template_hash = facts.hash;
    hold_plan_trials(h);
    return true;
}

size_t placementgroup_hashes(const struct placementgroup *plg, uint64_t ret[DRY_RUNS_FURTHER + 1])
{
    struct arena a = ARENA_INIT;
    struct refusal refusal;
    struct hold h = {.plg = plg, .a = &a};
    size_t n = expand(&h, &refusal) ? h.n_trials : 0;
    for (size_t i = 0; i < n; i++)
        ret[i] = h.trials[i].hash;
    arena_done(&a);
    return n;
}

void placementgroup_reconcile(const struct placementgroup_view *v, struct arena *a, struct plan *ret)
{
    struct hold h = {.v = v, .plg = v->plg, .a = a, .plan = ret};
    struct refusal refusal;
    plan_init(ret, a);
    if (v->plg->obj.meta.deleted_ms)
        return; // the garbage collector follows the owner references
    bool ok = expand(&h, &refusal);
    reservation_take(v, &h.bundles, h.template_hash, a, &h.reservation);
    hold_init(&h);
    if (h.reservation.from_the_future)
        plan_requeue(ret, STALE_CACHE_MS);
    else if (!ok)
        refuse(&h, &refusal);
    else if (h.reservation.changed)
        spec_changed(&h);
    else if (h.reservation.held == h.bundles.n)
        whole(&h);
    else if (hold_was(&h, HOLD_SCHEDULED))
        lost_some(&h);
    else
        hold_create(&h);
    if (h.reservation.look_again_ms >= 0)
        plan_requeue(ret, h.reservation.look_again_ms);
}
