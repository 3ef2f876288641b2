// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/finish.h"

#include "common/base/mem.h"
#include "operator/reconcile/commands.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

#include <inttypes.h>

bool finish_over(const struct group_decision *d)
{
    return conditions_was(&d->gang.conditions, FAILED) || conditions_was(&d->gang.conditions, SUCCEEDED);
}

// Stops the processes that still run. Pods that have ended are kept, so that their logs can be read.
static void keep_terminal_only(struct group_decision *d)
{
    if (workergroup_has_agent(d->wg)) {
        commands_end(d);
        return;
    }
    for (size_t i = 0; i < d->v->gang.n_pods; i++)
        if (!pod_terminal(d->v->gang.pods[i]) || d->v->gang.pods[i]->obj.meta.deleted_ms)
            gang_delete_pod(&d->gang, d->v->gang.pods[i], STAGE_SECOND);
}

static void fail(struct group_decision *d, const char *reason, const char *message, int64_t generation)
{
    static const enum condition_kind speak_of_it[] = {SCHEDULED, READY, FAILED};
    conditions_set(&d->gang.conditions, FAILED, CONDITION_TRUE, reason, message);
    conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, COND_FAILED, message);
    for (size_t i = 0; i < ARRAY_LEN(speak_of_it); i++)
        conditions_date(&d->gang.conditions, speak_of_it[i], generation);
    gang_commit(&d->gang, true);
    keep_terminal_only(d);
}

void finish_fail(struct group_decision *d, const char *reason, const char *message)
{
    fail(d, reason, message, d->gang.conditions.generation);
}

static bool rank_zero_decides(const struct group_decision *d)
{
    return d->wg->spec.success_policy == SUCCESS_RANK_ZERO;
}

bool finish_succeeded(const struct group_decision *d)
{
    const struct group_pods *c = &d->pods;
    if (workergroup_has_agent(d->wg))
        return rank_zero_decides(d) ? c->ranks.rank_zero_exited : c->ranks.exited == group_world_size(d->wg);
    return rank_zero_decides(d) ? c->current[0] && c->current[0]->phase == POD_SUCCEEDED : c->succeeded == c->replicas;
}

// The other ranks are stopped only after this is written. If rank 0 were gone before, it could not be asked again.
void finish_succeed(struct group_decision *d)
{
    const char *text = rank_zero_decides(d)
                           ? "rank 0 exited with code 0, and successPolicy is RankZero"
                           : arena_printf(d->a, "all %d ranks exited with code 0", group_world_size(d->wg));
    static const enum condition_kind speak_of_it[] = {SCHEDULED, READY, SUCCEEDED};
    const struct condition *before = d->progress.of_before ? conditions_old(&d->gang.conditions, SUCCEEDED) : NULL;
    conditions_set(&d->gang.conditions, SUCCEEDED, CONDITION_TRUE, REASON_COMPLETED, text);
    if (d->pods.gang.bound == d->pods.replicas)
        group_decision_bound(d);
    conditions_set(&d->gang.conditions, READY, CONDITION_FALSE, REASON_COMPLETED, text);
    for (size_t i = 0; before && i < ARRAY_LEN(speak_of_it); i++) // it is the earlier spec that has succeeded
        conditions_date(&d->gang.conditions, speak_of_it[i], before->observed_generation);
    gang_settle(&d->gang);
}

// When the group last became active: neither ended nor suspended. 0 = no condition.
static int64_t alive_since_ms(const struct group_decision *d)
{
    static const enum condition_kind ends[] = {SUCCEEDED, FAILED, SUSPENDED};
    int64_t since = 0;
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        const struct condition *c = conditions_old(&d->gang.conditions, ends[i]);
        if (c && c->status == CONDITION_FALSE)
            since = MAX(since, c->changed_ms);
    }
    return since;
}

bool finish_out_of_time(struct group_decision *d)
{
    int64_t limit = d->wg->spec.active_deadline_s * 1000, since = group_decision_at_latest_ms(alive_since_ms(d));
    if (limit < 0)
        return false;
    int64_t left =
        since ? wait_left(d->v->gang.memory, d->plan, WAIT_DEADLINE, since, since, limit, d->v->gang.now_ms) : limit;
    if (left > 0)
        plan_requeue(d->plan, left);
    return left <= 0;
}

// If the present spec asks for more and nothing was done about that yet, the time that ended belongs to the earlier
// spec. The present spec gets its own time.
void finish_late(struct group_decision *d)
{
    const struct condition *before = conditions_old(&d->gang.conditions, FAILED);
    group_decision_look_back(d);
    fail(d, REASON_DEADLINE_EXCEEDED,
         arena_printf(d->a, "it did not succeed within activeDeadlineSeconds (%" PRId64 " s)",
                      d->wg->spec.active_deadline_s),
         before && group_decision_asks_for_more(d) ? before->observed_generation : d->gang.conditions.generation);
}

static const struct condition *end_of(const struct group_decision *d)
{
    return conditions_old(&d->gang.conditions, conditions_was(&d->gang.conditions, FAILED) ? FAILED : SUCCEEDED);
}

bool finish_stays(const struct group_decision *d)
{
    return finish_over(d) &&
           (end_of(d)->observed_generation == d->gang.conditions.generation || !group_decision_asks_for_more(d));
}

// If ttlSecondsAfterFinished are over, the plan deletes the object. If not, it looks again when they are.
static bool expired(struct group_decision *d)
{
    int64_t ttl = d->wg->spec.ttl_s * 1000, ended = end_of(d)->changed_ms;
    if (ttl < 0)
        return false;
    int64_t left = ttl ? wait_left(d->v->gang.memory, d->plan, WAIT_TTL, ended, group_decision_at_latest_ms(ended), ttl,
                                   d->v->gang.now_ms)
                       : 0;
    if (left > 0) {
        plan_requeue(d->plan, left);
        return false;
    }
    struct action *x = plan_add(d->plan, ACTION_DELETE_OWNER, STAGE_FIRST);
    x->uid = arena_strdup(d->a, d->wg->obj.meta.uid);
    x->resource_version = arena_strdup(d->a, d->wg->obj.meta.resource_version);
    return true;
}

void finish_stay(struct group_decision *d)
{
    if (expired(d))
        return;
    if (!group_decision_asks_for_more(d)) { // then it has also ended as the present spec asks
        for (int i = 0; i < CONDITION_KINDS; i++)
            conditions_date(&d->gang.conditions, (enum condition_kind)i, d->gang.conditions.generation);
        if (d->pods.gang.existing)
            conditions_accept(&d->gang.conditions);
    }
    group_decision_look_back(d);
    keep_terminal_only(d);
    gang_settle(&d->gang);
}

void finish_refused(struct group_decision *d)
{
    if (expired(d))
        return;
    keep_terminal_only(d);
    gang_settle(&d->gang);
}
