// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/attempt.h"

#include "common/base/str.h"
#include "operator/reconcile/commands.h"
#include "operator/reconcile/patience.h"
#include "operator/reconcile/reason.h"

#include <string.h>

void attempt_delete_pods(struct work *w, int stage)
{
    if (w->pods.bundles)
        commands_stop_all(w, stage);
    w->pods_leave = !w->pods.bundles;
    for (size_t i = 0; i < w->v->gang.n_pods && w->pods_leave; i++)
        gang_delete_pod(&w->gang, w->v->gang.pods[i], stage);
}

// The pods of the next incarnation have other names. They are created when the old ones are gone. The status is written
// first: after a crash in between, the old pods count as stale, and the next decision deletes them.
static void replace_pods(struct work *w, const char *reason, const char *message)
{
    gang_begin_incarnation(&w->gang, reason, message);
    attempt_delete_pods(w, STAGE_SECOND);
}

void attempt_begin(struct work *w, const char *reason, const char *message)
{
    w->progress.attempt = gang_next(w->progress.attempt);
    conditions_alive(&w->gang.conditions);
    replace_pods(w, reason, message);
}

void attempt_roll_back(struct work *w, const char *reason, const char *message)
{
    w->plan->rolls_back = true;
    w->progress.of_before = false;
    if (workergroup_has_agent(w->wg) &&
        work_was_whole(w)) // tickets of an attempt are valid for one start of its processes
        w->progress.attempt = gang_next(w->progress.attempt);
    replace_pods(w, reason, message);
}

// The pods stay, except the lost ones: each of these gets a new one.
void attempt_begin_in_place(struct work *w, const char *message)
{
    const struct group_pods *c = &w->pods;
    bool pods_missing = c->n_failed || c->gang.existing < c->replicas;
    w->progress.attempt = gang_next(w->progress.attempt);
    if (pods_missing) {
        w->gang.incarnation = gang_next(w->gang.incarnation);
        conditions_wait(&w->gang.conditions, REASON_RESTARTING, message);
    } else {
        work_bound(w);
        conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, REASON_RESTARTING, message);
    }
    gang_commit(&w->gang, true);
    for (int32_t i = 0; i < c->replicas; i++)
        if (c->failed[i])
            gang_delete_pod(&w->gang, c->current[i], STAGE_SECOND);
    commands_stop_older(w, STAGE_SECOND);
}

int64_t attempt_pause_ms(const struct work *w, uint64_t seed)
{
    const struct workergroup_spec *s = &w->wg->spec;
    return patience_backoff_ms((int64_t)s->backoff_initial_s * 1000, (int64_t)s->backoff_max_s * 1000,
                               w->progress.restarts_in_a_row, seed);
}

static uint64_t jitter_seed(const struct work *w)
{
    const char *uid = w->wg->obj.meta.uid;
    return str_hash(uid, strlen(uid)) + (uint64_t)w->progress.attempt;
}

int64_t attempt_pause_left_ms(struct work *w, int64_t *ret_all)
{
    const struct group_progress *o = &w->progress;
    if (!o->restarts_in_a_row || !o->last_failure.time_ms)
        return 0;
    int64_t all = attempt_pause_ms(w, jitter_seed(w));
    if (ret_all)
        *ret_all = all;
    return patience_left(w->v->gang.memory, w->plan, PATIENCE_PAUSE, o->last_failure.time_ms,
                         work_at_latest_ms(o->last_failure.time_ms), all, w->v->gang.now_ms);
}

const char *attempt_pause_text(struct work *w)
{
    const struct group_progress *o = &w->progress;
    const struct group_failure *f = &o->last_failure;
    int64_t all = 0;
    attempt_pause_left_ms(w, &all);
    return arena_printf(w->a, "attempt %d begins after a backoff of %.1f s (restart %d, after %s of rank %d)",
                        o->attempt, (double)all / 1000, o->restarts, f->reason ? f->reason : FAILURE_ERROR, f->rank);
}
