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
static void forget_failures(struct work *w)
{
    w->progress.restarts = w->progress.restarts_counted = w->progress.restarts_in_a_row = 0;
    w->progress.last_failure = (struct group_failure){.rank = -1, .exit_code = -1};
}

// The attempt with this number is made from the present spec.
static void adopt(struct work *w, int32_t attempt)
{
    struct group_revision *r = &w->progress.revision;
    if (!r->worker || work_worker_differs(w))
        r->attempt = attempt;
    r->pods = w->revision.pods;
    r->worker = w->revision.worker;
    r->replicas = w->wg->spec.replicas;
    r->workers_per_replica = w->wg->spec.workers_per_replica;
    r->groups = w->wg->spec.placement_groups;
    r->n_groups = w->wg->spec.n_placement_groups;
}

// A pod has gone without a trace: somebody deleted it by force, or its node was removed.
static bool vanished(struct work *w)
{
    const struct group_pods *c = &w->pods;
    if (!work_was_whole(w) || c->gang.existing == c->replicas)
        return false;
    int32_t i = 0;
    while (i < c->replicas && c->current[i])
        i++;
    const char *message = "the pod is gone";
    if (c->bundles) // nobody knows any more which pod it was
        message = c->bundles->wait_message
                      ? c->bundles->wait_message
                      : arena_printf(w->a, "the pod of its bundle of PlacementGroup %s is gone",
                                     w->wg->spec.placement_groups[c->bundles->replicas[i].placementgroup].name);
    w->pods.infrastructure = true;
    w->pods.failure = (struct group_failure){
        .rank = i * w->wg->spec.workers_per_replica,
        .pod = c->bundles ? NULL : group_pod_name(w->wg, i, c->gang.incarnation, w->a),
        .exit_code = -1,
        .reason = FAILURE_POD_DELETED,
        .message = message,
        .time_ms = w->v->gang.now_ms,
    };
    return true;
}

// A suspended group has no pods and no room. The template is still checked, so that its mistakes are known before the
// group is resumed. There is one check per spec. The present attempt is over. A resumed group begins with the next
// attempt, which is counted here. A group that never ran begins with attempt 1.
static void suspended(struct work *w, const struct refusal *refusal)
{
    const struct condition *old = conditions_old(&w->gang.conditions, ACCEPTED);
    bool judged = old && old->status != CONDITION_UNKNOWN && old->observed_generation == w->gang.conditions.generation;
    bool said = conditions_was(&w->gang.conditions, SUSPENDED);
    if (refusal)
        conditions_set(&w->gang.conditions, ACCEPTED, CONDITION_FALSE, refusal->reason, refusal->message);
    else if (!judged)
        gang_verdict(&w->gang);
    bool began = w->pods.begun || (!said && (work_was_whole(w) || finish_over(w)));
    if (began) {
        w->progress.attempt = gang_next(w->progress.attempt);
        w->gang.incarnation = gang_next(w->gang.incarnation);
    }
    conditions_alive(&w->gang.conditions);
    conditions_set(&w->gang.conditions, SUSPENDED, CONDITION_TRUE, REASON_SUSPENDED, "spec.suspend is true");
    w->gang.status_first = began || !said;
    gang_wait(&w->gang, REASON_SUSPENDED, "spec.suspend is true");
    attempt_delete_pods(w, STAGE_SECOND);
}

// Processes of an earlier spec run, and Ready continues to speak of them.
static void ready_as_before(struct work *w, const char *reason, const char *message)
{
    const struct group_pods *c = &w->pods;
    int64_t generation = w->gang.conditions.now[READY].observed_generation;
    for (size_t i = 0; i < w->v->gang.n_pods; i++)
        if (w->v->gang.pods[i]->obj.meta.deleted_ms) // on a lost node it would stay for ever
            gang_delete_pod(&w->gang, w->v->gang.pods[i], STAGE_SECOND);
    if (c->failure.time_ms)
        conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, reason,
                       arena_printf(w->a, "%s; it is not restarted: %s", failure_text(w), message));
    else if (c->ready < c->gang.existing)
        conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, reason,
                       arena_printf(w->a,
                                    "%d of %d replicas of the earlier spec are ready; the new spec is refused: %s",
                                    c->ready, c->gang.existing, message));
    else
        conditions_set(&w->gang.conditions, READY, CONDITION_TRUE, REASON_RUNNING,
                       arena_printf(w->a, "all %d replicas of the earlier spec are ready; the new spec is refused: %s",
                                    c->gang.existing, message));
    conditions_date(&w->gang.conditions, READY, generation);
}

// The spec cannot run. Processes of an earlier spec continue as long as they can.
static void keep_earlier(struct work *w, const char *reason, const char *message)
{
    const struct group_pods *c = &w->pods;
    work_look_back(w);
    conditions_set(&w->gang.conditions, ACCEPTED, CONDITION_FALSE, reason, message);
    if (finish_over(w)) {
        finish_refused(w);
        return;
    }
    if (c->bundles ? !work_was_whole(w) : !c->gang.existing && !c->changed) {
        attempt_delete_pods(w, STAGE_SECOND);
        conditions_alive(&w->gang.conditions);
        conditions_wait(&w->gang.conditions, reason, message);
    } else if (!conditions_was(&w->gang.conditions, SCHEDULED) || c->mine < w->wg->status.replicas) {
        attempt_roll_back(w, reason,
                          c->bundles ? message
                                     : arena_printf(w->a, "some pods of the earlier spec are missing: %s", message));
        return;
    } else if (finish_succeeded(w)) {
        finish_succeed(w);
        return;
    } else {
        ready_as_before(w, reason, message);
    }
    gang_settle(&w->gang);
}

// Processes on other bundles continue there until the new bundles are available.
static bool bundles_wait(struct work *w)
{
    const struct group_bundles *p = w->pods.bundles;
    if (!p || !work_was_whole(w) || !group_bundles_wait(p))
        return false;
    if (str_eq(p->wait_reason, REASON_PENDING)) { // this passes by itself
        work_look_back(w);
        gang_settle(&w->gang);
    } else {
        keep_earlier(w, p->wait_reason, p->wait_message);
    }
    return true;
}

// The pods were made from an earlier spec, or have ended with it. The new spec may be impossible: the API server
// refuses the template, no node could ever take it, or its bundles do not exist. That must not cost the running group,
// so the new spec is tried first.
static void spec_changed(struct work *w)
{
    bool runs = conditions_was(&w->gang.conditions, SCHEDULED) && !finish_over(w);
    enum gang_verdict verdict = gang_verdict_of_change(&w->gang, runs);
    if (!finish_over(w) && bundles_wait(w))
        return;
    switch (verdict) {
    case GANG_OK:
        forget_failures(w);
        adopt(w, gang_next(w->progress.attempt));
        attempt_begin(w, REASON_TERMINATING,
                      w->pods.bundles ? "the spec has changed: all processes restart"
                                      : "the spec has changed: new pods replace the pods of the previous attempt");
        break;
    case GANG_REFUSED:
        keep_earlier(w, w->gang.conditions.now[ACCEPTED].reason, w->gang.conditions.now[ACCEPTED].message);
        break;
    case GANG_UNKNOWN:
        work_look_back(w);
        gang_settle(&w->gang);
        break;
    }
}

// The pods match the spec, but the processes in them do not.
static void worker_changed(struct work *w)
{
    const char *message = "spec.worker has changed: all ranks are restarted";
    forget_failures(w);
    conditions_accept(&w->gang.conditions);
    adopt(w, gang_next(w->progress.attempt));
    if (w->pods.displaced)
        attempt_begin(w, REASON_RESTARTING, message);
    else
        attempt_begin_in_place(w, message);
}

static void show(struct work *w)
{
    const struct group_pods *c = &w->pods;
    if (workergroup_has_agent(w->wg))
        processes_run(w);
    else if (c->ready == c->replicas)
        conditions_set(&w->gang.conditions, READY, CONDITION_TRUE, REASON_RUNNING,
                       arena_printf(w->a, "all %d replicas are ready", c->replicas));
    else if (c->succeeded)
        conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, REASON_COMPLETING,
                       arena_printf(w->a, "%d of %d replicas have ended with exit code 0", c->succeeded, c->replicas));
    else
        conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, REASON_STARTING,
                       arena_printf(w->a, "%d of %d replicas are ready", c->ready, c->replicas));
}

// All pods exist, and none has failed.
static void whole(struct work *w)
{
    if (!gang_whole(&w->gang))
        return;
    if (workergroup_has_agent(w->wg) && processes_mixed(w)) {
        attempt_begin_in_place(w, "only some of the processes run in this attempt: all ranks are restarted");
        return;
    }
    work_bound(w);
    if (!gang_whole_stuck(&w->gang))
        show(w);
    gang_settle(&w->gang);
}

static void decide(struct work *w)
{
    const struct group_pods *c = &w->pods;
    if (c->changed || finish_over(w)) {
        spec_changed(w);
        return;
    }
    conditions_alive(&w->gang.conditions);
    if (work_worker_differs(w) && work_was_whole(w)) {
        worker_changed(w);
        return;
    }
    adopt(w, w->progress.attempt);
    if (finish_succeeded(w)) {
        conditions_accept(&w->gang.conditions);
        finish_succeed(w);
    } else if (c->failure.time_ms || vanished(w)) {
        conditions_accept(&w->gang.conditions);
        failure_answer(w);
    } else if (c->gang.existing < c->replicas) {
        group_gang_create(w);
        if (workergroup_has_agent(w->wg))
            commands_stop_older(w, STAGE_FIRST);
    } else {
        whole(w);
    }
}

// Publishes the chosen rendezvous, so that other groups avoid it. Returns false if the spec asks for bundles that do
// not exist.
static bool take_bundles(struct work *w, bool ok, struct refusal *ret)
{
    const struct group_bundles *p = w->pods.bundles;
    w->template.grace_s = group_bundles_grace_s(w->v);
    if (p->master_host)
        w->plan->master = arena_printf(w->a, "%s:%d", p->master_host, p->master_port);
    w->plan->waits_for_port = p->waits_for_port;
    if (ok && p->refusal.reason)
        *ret = p->refusal;
    return ok && !p->refusal.reason;
}

// Starts from the status of the object.
static void begin(struct work *w)
{
    const struct workergroup_status *s = &w->wg->status;
    group_gang_init(w);
    w->progress = (struct group_progress){
        .attempt = w->pods.gang.attempt,
        .restarts = MAX(s->restarts, 0),
        .restarts_counted = MAX(s->restarts_counted, 0),
        .restarts_in_a_row = MAX(s->restarts_in_a_row, 0),
        .last_failure = s->last_failure,
        .revision = s->revision,
    };
}

static void choose(struct work *w, const struct refusal *refusal)
{
    const struct workergroup *wg = w->wg;
    if (finish_over(w) && refusal) {
        keep_earlier(w, refusal->reason, refusal->message);
        return;
    }
    if (finish_over(w) && finish_stays(w)) {
        finish_stay(w);
        return;
    }
    if (!w->pods.mine && w->gang.edited && !finish_over(w))
        forget_failures(w);
    if (wg->spec.suspend)
        suspended(w, refusal);
    else if (!finish_over(w) && !conditions_was(&w->gang.conditions, SUSPENDED) && !finish_succeeded(w) &&
             finish_out_of_time(w))
        finish_late(w);
    else if (refusal)
        keep_earlier(w, refusal->reason, refusal->message);
    else
        decide(w);
    attempt_pause_left_ms(w, NULL); // the pause passes, whatever else the group waits for
}

void group_reconcile(const struct group_view *v, struct arena *a, struct plan *ret)
{
    struct work w = {.v = v, .wg = v->wg, .a = a, .plan = ret};
    plan_init(ret, a);
    if (v->wg->obj.meta.deleted_ms)
        return; // the garbage collector follows the owner references
    struct refusal refusal;
    bool ok = group_accept(v->wg, a, &refusal, &w.template);
    if (ok)
        w.spec_hash = group_spec_hash(v->wg, w.template.hash);
    w.revision.pods = group_hash_text(w.spec_hash, a);
    w.revision.worker = group_hash_text(group_worker_hash(v->wg), a);
    group_pods_take(v, w.spec_hash, a, &w.pods);
    ret->waits[PATIENCE_KILLED] = w.pods.killed;
    if (w.pods.bundles)
        ok = take_bundles(&w, ok, &refusal);
    begin(&w);
    if (w.pods.gang.from_the_future) {
        gang_postpone(&w.gang);
        return;
    }
    choose(&w, ok ? NULL : &refusal);
    addresses_publish(&w);
}
