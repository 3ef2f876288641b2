// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/attempt.h"

#include "operator/reconcile/commands.h"
#include "operator/reconcile/reason.h"

void attempt_delete_pods(struct work *w, int stage)
{
    if (w->pods.bundles)
        commands_stop_all(w, stage);
    w->pods_leave = !w->pods.bundles;
    for (size_t i = 0; i < w->v->gang.n_pods && w->pods_leave; i++)
        work_delete(w, w->v->gang.pods[i], stage);
}

// The pods of the next incarnation have other names and are created when these are gone. The status goes first: a crash
// between the two leaves pods that count as stale, which the next decision deletes.
static void begin_incarnation(struct work *w)
{
    w->progress.incarnation = work_next(w->progress.incarnation);
    gang_commit(&w->gang, true);
    attempt_delete_pods(w, STAGE_SECOND);
}

void attempt_begin(struct work *w, const char *reason, const char *message)
{
    w->progress.attempt = work_next(w->progress.attempt);
    conditions_alive(&w->gang.conditions);
    conditions_wait(&w->gang.conditions, reason, message);
    begin_incarnation(w);
}

void attempt_roll_back(struct work *w, const char *reason, const char *message)
{
    w->plan->rolls_back = true;
    w->progress.of_before = false;
    if (w->wg->spec.runtime == RUNTIME_AGENT &&
        work_was_whole(w)) // tickets of an attempt are good for one life of its processes
        w->progress.attempt = work_next(w->progress.attempt);
    conditions_wait(&w->gang.conditions, reason, message);
    begin_incarnation(w);
}

// The pods stay, but for those that are lost themselves: each of these gets a new one.
void attempt_begin_in_place(struct work *w, const char *message)
{
    const struct group_pods *c = &w->pods;
    bool pods_missing = c->n_failed || c->gang.existing < c->replicas;
    w->progress.attempt = work_next(w->progress.attempt);
    if (pods_missing) {
        w->progress.incarnation = work_next(w->progress.incarnation);
        conditions_wait(&w->gang.conditions, REASON_RESTARTING, message);
    } else {
        work_bound(w);
        conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, REASON_RESTARTING, message);
    }
    gang_commit(&w->gang, true);
    for (int32_t i = 0; i < c->replicas; i++)
        if (c->failed[i])
            work_delete(w, c->current[i], STAGE_SECOND);
    commands_stop_older(w, STAGE_SECOND);
}
