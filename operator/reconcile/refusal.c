// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/refusal.h"

#include "operator/reconcile/attempt.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/finish.h"
#include "operator/reconcile/reason.h"

// What runs is of an earlier spec, and that is what Ready goes on speaking of.
static void ready_as_before(struct work *w, const char *reason, const char *message)
{
    const struct group_pods *c = &w->pods;
    struct condition *ready = &w->gang.conditions.now[READY];
    int64_t generation = ready->observed_generation;
    for (size_t i = 0; i < w->v->gang.n_pods; i++)
        if (w->v->gang.pods[i]->obj.meta.deleted_ms) // on a lost node it would stay for ever
            work_delete(w, w->v->gang.pods[i], STAGE_SECOND);
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
    ready->observed_generation = generation;
}

void refusal_keep_earlier(struct work *w, const char *reason, const char *message)
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
