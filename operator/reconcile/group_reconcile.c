// SPDX-License-Identifier: Apache-2.0
// The decision tree of a WorkerGroup, most final states first. Each step sees the same snapshot and ends the decision.
#include "operator/reconcile/group_reconcile.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/accept.h"
#include "operator/reconcile/addresses.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/commands.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/finish.h"
#include "operator/reconcile/gang_verdict.h"
#include "operator/reconcile/gang_whole.h"
#include "operator/reconcile/group_gang.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/processes.h"
#include "operator/reconcile/reason.h"

// A new spec has its own budget of restarts, and does not wait because of earlier failures.
static void forget_failures(struct group_decision *d)
{
    d->progress.restarts = d->progress.restarts_counted = d->progress.restarts_in_a_row = 0;
    d->progress.last_failure = (struct group_failure){.rank = -1, .exit_code = -1};
}

// The attempt with this number is made from the present spec.
static void adopt(struct group_decision *d, int32_t attempt)
{
    struct group_revision *r = &d->progress.revision;
    if (!r->worker || group_decision_worker_differs(d))
        r->attempt = attempt;
    r->pods = d->revision.pods;
    r->worker = d->revision.worker;
    r->replicas = d->wg->spec.replicas;
    r->workers_per_replica = d->wg->spec.workers_per_replica;
    r->groups = d->wg->spec.placement_groups;
    r->n_groups = d->wg->spec.n_placement_groups;
}

// A pod has gone without a trace: somebody deleted it by force, or its node was removed.
static bool vanished(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    if (!group_decision_was_whole(d) || c->gang.existing == c->replicas)
        return false;
    int32_t i = 0;
    while (i < c->replicas && c->current[i])
        i++;
    const char *message = "the pod is gone";
    if (c->bundles) // nobody knows any more which pod it was
        message = c->bundles->wait_message
                      ? c->bundles->wait_message
                      : arena_printf(d->a, "the pod of its bundle of PlacementGroup %s is gone",
                                     d->wg->spec.placement_groups[c->bundles->replicas[i].placementgroup].name);
    d->pods.infrastructure = true;
    d->pods.failure = (struct group_failure){
        .rank = i * d->wg->spec.workers_per_replica,
        .pod = c->bundles ? NULL : group_pod_name(d->wg, i, c->gang.incarnation, d->a),
        .exit_code = -1,
        .reason = FAILURE_POD_DELETED,
        .message = message,
        .time_ms = d->v->gang.now_ms,
    };
    return true;
}

// A suspended group has no pods and no room. The template is still checked, so that its mistakes are known before the
// group is resumed. There is one check per spec. The present attempt is over. A resumed group begins with the next
// attempt, which is counted here. A group that never ran begins with attempt 1.
static void suspended(struct group_decision *d, const struct refusal *refusal)
{
    bool said = conditions_was(&d->gang.conditions, SUSPENDED);
    if (refusal)
        conditions_set(&d->gang.conditions, ACCEPTED, CONDITION_FALSE, refusal->reason, refusal->message);
    else if (!conditions_judged(&d->gang.conditions, ACCEPTED))
        gang_verdict(&d->gang);
    bool began = d->pods.begun || (!said && (group_decision_was_whole(d) || finish_over(d)));
    if (began) {
        d->progress.attempt = gang_next(d->progress.attempt);
        d->gang.incarnation = gang_next(d->gang.incarnation);
    }
    conditions_alive(&d->gang.conditions);
    conditions_set(&d->gang.conditions, SUSPENDED, CONDITION_TRUE, REASON_SUSPENDED, "spec.suspend is true");
    d->gang.status_first = began || !said;
    gang_wait(&d->gang, REASON_SUSPENDED, "spec.suspend is true");
    attempt_delete_pods(d);
}

// Processes of an earlier spec run, and Ready continues to describe them.
static void ready_as_before(struct group_decision *d, const char *reason, const char *message)
{
    const struct group_pods *c = &d->pods;
    int64_t generation = d->gang.conditions.now[READY].observed_generation;
    for (size_t i = 0; i < d->v->gang.n_pods; i++)
        if (d->v->gang.pods[i]->obj.meta.deleted_ms) // on a lost node it would stay for ever
            gang_delete_pod(&d->gang, d->v->gang.pods[i], STAGE_SECOND);
    if (c->failure.time_ms)
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, reason,
                       arena_printf(d->a, "%s; it is not restarted: %s", failure_text(d), message));
    else if (c->ready < c->gang.existing)
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, reason,
                       arena_printf(d->a,
                                    "%d of %d replicas of the earlier spec are ready; the new spec is refused: %s",
                                    c->ready, c->gang.existing, message));
    else
        conditions_set(&d->gang.conditions, READY, CONDITION_TRUE, REASON_RUNNING,
                       arena_printf(d->a, "all %d replicas of the earlier spec are ready; the new spec is refused: %s",
                                    c->gang.existing, message));
    conditions_date(&d->gang.conditions, READY, generation);
}

// The spec cannot run. Processes of an earlier spec continue as long as they can.
static void keep_earlier(struct group_decision *d, const char *reason, const char *message)
{
    const struct group_pods *c = &d->pods;
    group_decision_look_back(d);
    conditions_set(&d->gang.conditions, ACCEPTED, CONDITION_FALSE, reason, message);
    if (finish_over(d)) {
        finish_refused(d);
        return;
    }
    if (c->bundles ? !group_decision_was_whole(d) : !c->gang.existing && !c->changed) {
        attempt_delete_pods(d);
        conditions_alive(&d->gang.conditions);
        conditions_wait(&d->gang.conditions, reason, message);
    } else if (!conditions_was(&d->gang.conditions, SCHEDULED) || c->mine < d->wg->status.replicas) {
        attempt_give_back(d, reason,
                          c->bundles ? message
                                     : arena_printf(d->a, "some pods of the earlier spec are missing: %s", message));
        return;
    } else if (finish_succeeded(d)) {
        finish_succeed(d);
        return;
    } else {
        ready_as_before(d, reason, message);
    }
    gang_settle(&d->gang);
}

// Processes on other bundles continue there until the new bundles are available.
static bool bundles_wait(struct group_decision *d)
{
    const struct group_bundles *p = d->pods.bundles;
    if (!p || !group_decision_was_whole(d) || !group_bundles_wait(p))
        return false;
    if (str_eq(p->wait_reason, REASON_PENDING)) { // this passes by itself
        group_decision_look_back(d);
        gang_settle(&d->gang);
    } else {
        keep_earlier(d, p->wait_reason, p->wait_message);
    }
    return true;
}

// The pods were made from an earlier spec, or have ended with it. The new spec may be impossible: the API server
// refuses the template, no node could ever take it, or its bundles do not exist. That must not cost the running group,
// so the new spec is tried first.
static void spec_changed(struct group_decision *d)
{
    bool runs = conditions_was(&d->gang.conditions, SCHEDULED) && !finish_over(d);
    enum gang_verdict verdict = gang_verdict_of_change(&d->gang, runs);
    if (!finish_over(d) && bundles_wait(d))
        return;
    switch (verdict) {
    case GANG_OK:
        forget_failures(d);
        adopt(d, gang_next(d->progress.attempt));
        attempt_begin(d, REASON_TERMINATING,
                      d->pods.bundles ? "the spec has changed: all processes restart"
                                      : "the spec has changed: new pods replace the pods of the previous attempt");
        break;
    case GANG_REFUSED:
        keep_earlier(d, d->gang.conditions.now[ACCEPTED].reason, d->gang.conditions.now[ACCEPTED].message);
        break;
    case GANG_UNKNOWN:
        group_decision_look_back(d);
        gang_settle(&d->gang);
        break;
    }
}

// The pods match the spec, but the processes in them do not.
static void worker_changed(struct group_decision *d)
{
    const char *message = "spec.worker has changed: all ranks are restarted";
    forget_failures(d);
    conditions_accept(&d->gang.conditions);
    adopt(d, gang_next(d->progress.attempt));
    if (d->pods.displaced)
        attempt_begin(d, REASON_RESTARTING, message);
    else
        attempt_begin_in_place(d, message);
}

static void show(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    if (workergroup_has_agent(d->wg))
        processes_run(d);
    else if (c->ready == c->replicas)
        conditions_set(&d->gang.conditions, READY, CONDITION_TRUE, REASON_RUNNING,
                       arena_printf(d->a, "all %d replicas are ready", c->replicas));
    else if (c->succeeded)
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_COMPLETING,
                       arena_printf(d->a, "%d of %d replicas have ended with exit code 0", c->succeeded, c->replicas));
    else
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_STARTING,
                       arena_printf(d->a, "%d of %d replicas are ready", c->ready, c->replicas));
}

// All pods exist, and none has failed.
static void whole(struct group_decision *d)
{
    if (!gang_whole(&d->gang))
        return;
    if (workergroup_has_agent(d->wg) && processes_mixed(d)) {
        attempt_begin_in_place(d, "only some of the processes run in this attempt: all ranks are restarted");
        return;
    }
    group_decision_bound(d);
    if (!gang_whole_stuck(&d->gang))
        show(d);
    gang_settle(&d->gang);
}

static void decide(struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    if (c->changed || finish_over(d)) {
        spec_changed(d);
        return;
    }
    conditions_alive(&d->gang.conditions);
    if (group_decision_worker_differs(d) && group_decision_was_whole(d)) {
        worker_changed(d);
        return;
    }
    adopt(d, d->progress.attempt);
    if (finish_succeeded(d)) {
        conditions_accept(&d->gang.conditions);
        finish_succeed(d);
    } else if (c->failure.time_ms || vanished(d)) {
        conditions_accept(&d->gang.conditions);
        failure_answer(d);
    } else if (c->gang.existing < c->replicas) {
        group_gang_create(d);
        if (workergroup_has_agent(d->wg))
            commands_stop_older(d, STAGE_FIRST);
    } else {
        whole(d);
    }
}

// Publishes the chosen rendezvous, so that other groups avoid it. Returns false if the spec asks for bundles that do
// not exist.
static bool take_bundles(struct group_decision *d, bool ok, struct refusal *ret)
{
    const struct group_bundles *p = d->pods.bundles;
    d->template.grace_s = group_bundles_grace_s(d->v);
    if (p->master_host)
        d->plan->master = arena_printf(d->a, "%s:%d", p->master_host, p->master_port);
    d->plan->waits_for_port = p->waits_for_port;
    if (ok && p->refusal.reason)
        *ret = p->refusal;
    return ok && !p->refusal.reason;
}

// Starts from the status of the object.
static void begin(struct group_decision *d)
{
    const struct workergroup_status *s = &d->wg->status;
    group_gang_init(d);
    d->progress = (struct group_progress){
        .attempt = d->pods.gang.attempt,
        .restarts = MAX(s->restarts, 0),
        .restarts_counted = MAX(s->restarts_counted, 0),
        .restarts_in_a_row = MAX(s->restarts_in_a_row, 0),
        .last_failure = s->last_failure,
        .revision = s->revision,
    };
}

static void choose(struct group_decision *d, const struct refusal *refusal)
{
    const struct workergroup *wg = d->wg;
    if (finish_over(d) && refusal) {
        keep_earlier(d, refusal->reason, refusal->message);
        return;
    }
    if (finish_over(d) && finish_stays(d)) {
        finish_stay(d);
        return;
    }
    if (!d->pods.mine && d->gang.edited && !finish_over(d))
        forget_failures(d);
    if (wg->spec.suspend)
        suspended(d, refusal);
    else if (!finish_over(d) && !conditions_was(&d->gang.conditions, SUSPENDED) && !finish_succeeded(d) &&
             finish_out_of_time(d))
        finish_late(d);
    else if (refusal)
        keep_earlier(d, refusal->reason, refusal->message);
    else
        decide(d);
    attempt_pause_left_ms(d); // the pause passes, whatever else the group waits for
}

void group_reconcile(const struct group_view *v, struct arena *a, struct plan *ret)
{
    struct group_decision d = {.v = v, .wg = v->wg, .a = a, .plan = ret};
    plan_init(ret, a);
    if (v->wg->obj.meta.deleted_ms)
        return; // the garbage collector follows the owner references
    struct refusal refusal;
    bool ok = group_accept(v->wg, a, &refusal, &d.template);
    if (ok)
        d.spec_hash = group_spec_hash(v->wg, d.template.hash);
    d.revision.pods = group_hash_text(d.spec_hash, a);
    d.revision.worker = group_hash_text(group_worker_hash(v->wg), a);
    group_pods_take(v, d.spec_hash, a, &d.pods);
    ret->waits[WAIT_KILLED] = d.pods.killed;
    if (d.pods.bundles)
        ok = take_bundles(&d, ok, &refusal);
    begin(&d);
    if (d.pods.gang.from_the_future) {
        gang_postpone(&d.gang);
        return;
    }
    choose(&d, ok ? NULL : &refusal);
    addresses_publish(&d);
}
