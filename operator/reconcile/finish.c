// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/finish.h"

#include "common/base/mem.h"
#include "operator/reconcile/commands.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/patience.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>

bool finish_over(const struct work *w)
{
    return conditions_was(&w->gang.conditions, FAILED) || conditions_was(&w->gang.conditions, SUCCEEDED);
}

// Stops the processes that still run. Pods that have ended are kept, so that their logs can be read.
static void keep_terminal_only(struct work *w)
{
    if (workergroup_has_agent(w->wg)) {
        commands_end(w, STAGE_SECOND);
        return;
    }
    for (size_t i = 0; i < w->v->gang.n_pods; i++)
        if (!pod_terminal(w->v->gang.pods[i]) || w->v->gang.pods[i]->obj.meta.deleted_ms)
            gang_delete_pod(&w->gang, w->v->gang.pods[i], STAGE_SECOND);
}

static void fail(struct work *w, const char *reason, const char *message, int64_t generation)
{
    static const enum condition_kind speak_of_it[] = {SCHEDULED, READY, FAILED};
    conditions_set(&w->gang.conditions, FAILED, CONDITION_TRUE, reason, message);
    conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, COND_FAILED, message);
    for (size_t i = 0; i < ARRAY_LEN(speak_of_it); i++)
        conditions_date(&w->gang.conditions, speak_of_it[i], generation);
    gang_commit(&w->gang, true);
    keep_terminal_only(w);
}

void finish_fail(struct work *w, const char *reason, const char *message)
{
    fail(w, reason, message, w->gang.conditions.generation);
}

static bool rank_zero_decides(const struct work *w)
{
    return w->wg->spec.success_policy == SUCCESS_RANK_ZERO;
}

bool finish_succeeded(const struct work *w)
{
    const struct group_pods *c = &w->pods;
    if (workergroup_has_agent(w->wg))
        return rank_zero_decides(w) ? c->ranks.rank_zero_exited : c->ranks.exited == group_world_size(w->wg);
    return rank_zero_decides(w) ? c->current[0] && c->current[0]->phase == POD_SUCCEEDED : c->succeeded == c->replicas;
}

// The other ranks are stopped only after this is written. If rank 0 were gone before, it could not be asked again.
void finish_succeed(struct work *w)
{
    const char *text = rank_zero_decides(w)
                           ? "rank 0 exited with code 0, and successPolicy is RankZero"
                           : arena_printf(w->a, "all %d ranks exited with code 0", group_world_size(w->wg));
    static const enum condition_kind speak_of_it[] = {SCHEDULED, READY, SUCCEEDED};
    const struct condition *before = w->progress.of_before ? conditions_old(&w->gang.conditions, SUCCEEDED) : NULL;
    conditions_set(&w->gang.conditions, SUCCEEDED, CONDITION_TRUE, REASON_COMPLETED, text);
    if (w->pods.gang.bound == w->pods.replicas)
        work_bound(w);
    conditions_set(&w->gang.conditions, READY, CONDITION_FALSE, REASON_COMPLETED, text);
    for (size_t i = 0; before && i < ARRAY_LEN(speak_of_it); i++) // it is the earlier spec that has succeeded
        conditions_date(&w->gang.conditions, speak_of_it[i], before->observed_generation);
    gang_settle(&w->gang);
}

// The latest change of the conditions that say that the group has neither ended nor is suspended; 0 = no such
// condition.
static int64_t alive_since_ms(const struct work *w)
{
    static const enum condition_kind ends[] = {SUCCEEDED, FAILED, SUSPENDED};
    int64_t since = 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const struct condition *c = conditions_old(&w->gang.conditions, ends[i]);
        if (c && c->status == CONDITION_FALSE)
            since = MAX(since, c->changed_ms);
    }
    return since;
}

bool finish_out_of_time(struct work *w)
{
    int64_t patience = w->wg->spec.active_deadline_s * 1000, since = work_at_latest_ms(alive_since_ms(w));
    if (patience < 0)
        return false;
    int64_t left =
        since ? patience_left(w->v->gang.memory, w->plan, PATIENCE_DEADLINE, since, since, patience, w->v->gang.now_ms)
              : patience;
    if (left > 0)
        plan_requeue(w->plan, left);
    return left <= 0;
}

// If the present spec asks for more and nothing was done about that yet, the time that ended belongs to the earlier
// spec. The present spec gets its own time.
void finish_late(struct work *w)
{
    const struct condition *before = conditions_old(&w->gang.conditions, FAILED);
    work_look_back(w);
    fail(w, REASON_DEADLINE_EXCEEDED,
         arena_printf(w->a, "it did not succeed within activeDeadlineSeconds (%" PRId64 " s)",
                      w->wg->spec.active_deadline_s),
         before && work_asks_for_more(w) ? before->observed_generation : w->gang.conditions.generation);
}

static const struct condition *end_of(const struct work *w)
{
    return conditions_old(&w->gang.conditions, conditions_was(&w->gang.conditions, FAILED) ? FAILED : SUCCEEDED);
}

bool finish_stays(const struct work *w)
{
    return finish_over(w) &&
           (end_of(w)->observed_generation == w->gang.conditions.generation || !work_asks_for_more(w));
}

// If ttlSecondsAfterFinished are over, the plan deletes the object. If not, it looks again when they are.
static bool expired(struct work *w)
{
    int64_t ttl = w->wg->spec.ttl_s * 1000, ended = end_of(w)->changed_ms;
    if (ttl < 0)
        return false;
    int64_t left = ttl ? patience_left(w->v->gang.memory, w->plan, PATIENCE_TTL, ended, work_at_latest_ms(ended), ttl,
                                       w->v->gang.now_ms)
                       : 0;
    if (left > 0) {
        plan_requeue(w->plan, left);
        return false;
    }
    struct action *x = plan_add(w->plan, ACTION_DELETE_OWNER, STAGE_FIRST);
    x->uid = arena_strdup(w->a, w->wg->obj.meta.uid);
    x->resource_version = arena_strdup(w->a, w->wg->obj.meta.resource_version);
    return true;
}

void finish_stay(struct work *w)
{
    if (expired(w))
        return;
    if (!work_asks_for_more(w)) { // then it has also ended as the present spec asks
        for (int i = 0; i < CONDITION_KINDS; i++)
            conditions_date(&w->gang.conditions, (enum condition_kind)i, w->gang.conditions.generation);
        if (w->pods.gang.existing)
            conditions_accept(&w->gang.conditions);
    }
    work_look_back(w);
    keep_terminal_only(w);
    gang_settle(&w->gang);
}

void finish_refused(struct work *w)
{
    if (expired(w))
        return;
    keep_terminal_only(w);
    gang_settle(&w->gang);
}
