// SPDX-License-Identifier: Apache-2.0
// The decision tree of a PlacementGroup. Each step sees the same snapshot and ends the decision.
#include "operator/reconcile/placementgroup_reconcile.h"

#include "common/base/mem.h"
#include "operator/reconcile/accept.h"
#include "operator/reconcile/gang_create.h"
#include "operator/reconcile/gang_manifest.h"
#include "operator/reconcile/gang_verdict.h"
#include "operator/reconcile/gang_whole.h"
#include "operator/reconcile/placementgroup_gang.h"
#include "operator/reconcile/reason.h"

// Pods of the next incarnation join the pods that stay. The status is written first, so that the next operator
// continues at the same step after a crash.
static void plan_again(struct placementgroup_decision *d, const char *reason, const char *message)
{
    gang_begin_incarnation(&d->gang, reason, message);
    gang_delete_gone(&d->gang, STAGE_SECOND);
    d->plan->gives_back = d->pods.gang.own_failure;
}

static const char *missing_text(struct placementgroup_decision *d)
{
    const struct bundles *b = &d->bundles;
    int32_t *items = arena_array(d->a, (size_t)b->n, sizeof *items);
    size_t n = 0;
    for (int32_t i = 0; i < b->n; i++)
        if (!d->pods.pod_of[i])
            items[n++] = i;
    return arena_printf(d->a, "%s %s", n == 1 ? "bundle" : "bundles", bundles_text(items, n, d->a));
}

// The bundles were all bound. A bundle that is missing now was lost, or is new in the spec.
static void lost_some(struct placementgroup_decision *d)
{
    const struct placementgroup_pods *r = &d->pods;
    const char *which = missing_text(d);
    conditions_accept(&d->gang.conditions);
    if (r->lost) {
        const char *node = r->lost->node ? arena_printf(d->a, " on %s", r->lost->node) : "";
        plan_again(d, REASON_RESTARTING,
                   arena_printf(d->a, "pod %s%s is lost: %s; planned again: %s", r->lost->obj.meta.name, node,
                                r->lost_reason, which));
    } else if (d->plg->status.bundles < d->bundles.n) {
        plan_again(d, REASON_PENDING, arena_printf(d->a, "to be added: %s", which));
    } else {
        plan_again(d, REASON_RESTARTING, arena_printf(d->a, "without a pod, planned again: %s", which));
    }
}

// `more` continues the message of Ready, unless a container is stuck.
static void show(struct placementgroup_decision *d, const char *more)
{
    const struct placementgroup_pods *r = &d->pods;
    conditions_set(&d->gang.conditions, SCHEDULED, CONDITION_TRUE, REASON_BOUND,
                   arena_printf(d->a, "all %d bundles are bound, on %zu pod%s", d->bundles.n, r->gang.n_live,
                                r->gang.n_live == 1 ? "" : "s"));
    if (gang_whole_stuck(&d->gang))
        return;
    if ((size_t)r->gang.ready < r->gang.n_live)
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_STARTING,
                       arena_printf(d->a, "%d of %zu pods are ready%s", r->gang.ready, r->gang.n_live, more));
    else
        conditions_set(&d->gang.conditions, READY, CONDITION_TRUE, REASON_RUNNING,
                       arena_printf(d->a, "all %d bundles are ready%s", d->bundles.n, more));
}

static void whole(struct placementgroup_decision *d)
{
    if (!gang_whole(&d->gang))
        return;
    show(d, "");
    gang_settle(&d->gang);
}

// Every bundle has a pod as an earlier spec asked. The conditions continue to describe that spec.
static bool show_earlier(struct placementgroup_decision *d, const char *more)
{
    static const enum condition_kind described[] = {SCHEDULED, READY};
    const struct placementgroup_pods *r = &d->pods;
    if (!r->present || r->present < d->bundles.n || r->bound < r->present)
        return false;
    show(d, more);
    for (size_t i = 0; i < ARRAY_LEN(described); i++) {
        const struct condition *old = conditions_old(&d->gang.conditions, described[i]);
        if (old)
            conditions_date(&d->gang.conditions, described[i], old->observed_generation);
    }
    return true;
}

// The present spec is refused. Pods of an earlier spec stay if they were all bound once, and are given back otherwise.
static void keep_earlier(struct placementgroup_decision *d)
{
    const struct placementgroup_pods *r = &d->pods;
    const struct condition *c = &d->gang.conditions.now[ACCEPTED];
    if (show_earlier(d, arena_printf(d->a, " for the earlier spec; the new spec is refused: %s", c->message))) {
        gang_settle(&d->gang);
        return;
    }
    if (!conditions_was(&d->gang.conditions, SCHEDULED)) {
        d->gang.owner->give_back(&d->gang, c->reason, c->message);
        return;
    }
    if (d->bundles.n)
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, c->reason,
                       arena_printf(d->a,
                                    "%d of %d bundles have a pod for an earlier spec; the new spec is refused: %s",
                                    r->present, d->bundles.n, c->message));
    gang_settle(&d->gang);
}

// Some pods were made from an earlier spec. The new spec may be impossible: the API server refuses the template, or no
// node could ever take the bundles. That must not cost the running pods, so the new spec is tried first. Then only the
// pods that differ are replaced. If the gang was never whole, all of its pods are given back.
static void spec_changed(struct placementgroup_decision *d)
{
    const struct placementgroup_pods *r = &d->pods;
    bool was_whole = conditions_was(&d->gang.conditions, SCHEDULED);
    enum gang_verdict verdict = gang_verdict_of_change(&d->gang, was_whole);
    if (verdict == GANG_REFUSED) {
        keep_earlier(d);
        return;
    }
    if (verdict == GANG_UNKNOWN) {
        show_earlier(d, "");
        gang_settle(&d->gang);
        return;
    }
    gang_begin_incarnation(&d->gang, REASON_TERMINATING,
                           "the spec has changed: new pods replace those that differ from it");
    for (size_t i = 0; i < r->gang.n_live; i++)
        if (r->differs[i] ||
            (!was_whole && pod_label_number(r->gang.live[i], LABEL_INCARNATION) == r->gang.incarnation))
            gang_delete_pod(&d->gang, r->gang.live[i], STAGE_SECOND);
}

// The present spec cannot run.
static void refuse(struct placementgroup_decision *d, const struct refusal *refusal)
{
    conditions_set(&d->gang.conditions, ACCEPTED, CONDITION_FALSE, refusal->reason, refusal->message);
    if (d->v->gang.n_pods) {
        keep_earlier(d);
        return;
    }
    gang_wait(&d->gang, refusal->reason, refusal->message);
}

static bool expand(struct placementgroup_decision *d, struct refusal *ret)
{
    struct template_facts facts;
    struct err err = ERR_INIT;
    if (bundles_expand(&d->plg->spec, d->a, &d->bundles, &err) < 0) {
        *ret = (struct refusal){REASON_INVALID_TEMPLATE, arena_strdup(d->a, err.msg)};
        d->bundles = (struct bundles){0};
        return false;
    }
    if (bundles_check(&d->bundles, &err) < 0) {
        *ret = (struct refusal){REASON_INVALID_TEMPLATE, arena_strdup(d->a, err.msg)};
        return false;
    }
    if (!placementgroup_accept(d->plg, d->a, ret, &facts))
        return false;
    d->template_hash = facts.hash;
    return true;
}

void placementgroup_reconcile(const struct placementgroup_view *v, struct arena *a, struct plan *ret)
{
    struct placementgroup_decision d = {.v = v, .plg = v->plg, .a = a, .plan = ret};
    struct refusal refusal;
    plan_init(ret, a);
    if (v->plg->obj.meta.deleted_ms)
        return; // the garbage collector follows the owner references
    bool ok = expand(&d, &refusal);
    placementgroup_pods_take(v, &d.bundles, d.template_hash, a, &d.pods);
    placementgroup_gang_init(&d);
    if (d.pods.gang.from_the_future)
        gang_postpone(&d.gang);
    else if (!ok)
        refuse(&d, &refusal);
    else if (d.pods.changed)
        spec_changed(&d);
    else if (d.pods.present == d.bundles.n)
        whole(&d);
    else if (conditions_was(&d.gang.conditions, SCHEDULED))
        lost_some(&d);
    else
        gang_create(&d.gang);
    for (size_t i = 0; i < d.pods.n_avoided; i++) // while the dead pods exist, also after a restart of the operator
        plan_avoid(ret, d.pods.avoided[i]);
    if (d.pods.gang.look_again_ms >= 0)
        plan_requeue(ret, d.pods.gang.look_again_ms);
}
