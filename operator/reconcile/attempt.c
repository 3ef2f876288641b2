// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/attempt.h"

#include "common/base/str.h"
#include "operator/reconcile/commands.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

#include <string.h>

void attempt_delete_pods(struct group_decision *d)
{
    if (d->pods.bundles)
        commands_stop_all(d);
    d->pods_leave = !d->pods.bundles;
    for (size_t i = 0; i < d->v->gang.n_pods && d->pods_leave; i++)
        gang_delete_pod(&d->gang, d->v->gang.pods[i], STAGE_SECOND);
}

// The pods of the next incarnation have other names. They are created when the old ones are gone. The status is written
// first: after a crash in between, the old pods count as stale, and the next decision deletes them.
static void replace_pods(struct group_decision *d, const char *reason, const char *message)
{
    gang_begin_incarnation(&d->gang, reason, message);
    attempt_delete_pods(d);
}

void attempt_begin(struct group_decision *d, const char *reason, const char *message)
{
    d->progress.attempt = gang_next(d->progress.attempt);
    conditions_alive(&d->gang.conditions);
    replace_pods(d, reason, message);
}

void attempt_give_back(struct group_decision *d, const char *reason, const char *message)
{
    d->plan->gives_back = true;
    d->progress.of_before = false;
    if (workergroup_has_agent(d->wg) &&
        group_decision_was_whole(d)) // tickets of an attempt are valid for one start of its processes
        d->progress.attempt = gang_next(d->progress.attempt);
    replace_pods(d, reason, message);
}

// The pods stay, except the lost ones: each of these gets a new one.
void attempt_begin_in_place(struct group_decision *d, const char *message)
{
    const struct group_pods *c = &d->pods;
    bool pods_missing = c->n_failed || c->gang.existing < c->replicas;
    d->progress.attempt = gang_next(d->progress.attempt);
    if (pods_missing) {
        d->gang.incarnation = gang_next(d->gang.incarnation);
        conditions_wait(&d->gang.conditions, REASON_RESTARTING, message);
    } else {
        group_decision_bound(d);
        conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_RESTARTING, message);
    }
    gang_commit(&d->gang, true);
    for (int32_t i = 0; i < c->replicas; i++)
        if (c->failed[i] && group_pods_leads(c, i)) // the replicas in one pod fail together
            gang_delete_pod(&d->gang, c->current[i], STAGE_SECOND);
    commands_stop_older(d, STAGE_SECOND);
}

int64_t attempt_pause_ms(const struct group_decision *d, uint64_t seed)
{
    const struct workergroup_spec *s = &d->wg->spec;
    return wait_backoff_ms((int64_t)s->backoff_initial_s * 1000, (int64_t)s->backoff_max_s * 1000,
                           d->progress.restarts_in_a_row, seed);
}

// The whole pause before the present attempt.
static int64_t pause_ms(const struct group_decision *d)
{
    const char *uid = d->wg->obj.meta.uid;
    return attempt_pause_ms(d, str_hash(uid, strlen(uid)) + (uint64_t)d->progress.attempt);
}

int64_t attempt_pause_left_ms(struct group_decision *d)
{
    const struct group_progress *o = &d->progress;
    if (!o->restarts_in_a_row || !o->last_failure.time_ms)
        return 0;
    return wait_left(d->v->gang.memory, d->plan, WAIT_PAUSE, o->last_failure.time_ms,
                     group_decision_at_latest_ms(o->last_failure.time_ms), pause_ms(d), d->v->gang.now_ms);
}

const char *attempt_pause_text(struct group_decision *d)
{
    const struct group_progress *o = &d->progress;
    const struct group_failure *f = &o->last_failure;
    return arena_printf(d->a, "attempt %d begins after a backoff of %.1f s (restart %d, after %s of rank %d)",
                        o->attempt, (double)pause_ms(d) / 1000, o->restarts, f->reason ? f->reason : FAILURE_ERROR,
                        f->rank);
}
