// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/failure.h"

#include "common/base/last_line.h"
#include "common/base/mem.h"
#include "operator/reconcile/attempt.h"
#include "operator/reconcile/finish.h"
#include "operator/reconcile/reason.h"

enum {
    HEALTHY_MAX_MS =
        10 * 60 * 1000, // after so long Ready, or ten times the last pause, the pauses start again from the shortest
    HEALTHY_TIMES = 10,
};

const char *failure_text(struct group_decision *d)
{
    const struct group_failure *f = &d->pods.failure;
    const char *code = f->exit_code >= 0 ? arena_printf(d->a, " with exit code %d", f->exit_code) : "";
    const char *node = f->node ? arena_printf(d->a, " on %s", f->node) : "";
    const char *pod = f->pod ? arena_printf(d->a, " (pod %s%s)", f->pod, node) : "";
    const char *line = last_line(f->message, d->a);
    return arena_printf(d->a, "rank %d%s failed%s: %s%s%s", f->rank, pod, code, f->reason, *line ? ": " : "", line);
}

// The rule for the exit code. A failure of the infrastructure has no exit code of a worker.
static const struct failure_rule *rule_of(const struct group_decision *d)
{
    const struct workergroup_spec *s = &d->wg->spec;
    for (size_t i = 0; i < s->n_failure_rules && !d->pods.infrastructure; i++)
        for (size_t k = 0; k < s->failure_rules[i].n_exit_codes; k++)
            if (s->failure_rules[i].exit_codes[k] == d->pods.failure.exit_code)
                return &s->failure_rules[i];
    return NULL;
}

// Returns why there is no restart; NULL: there is one.
static const char *no_restart(struct group_decision *d, const struct failure_rule *rule, bool counts,
                              const char **ret_reason)
{
    const struct workergroup_spec *s = &d->wg->spec;
    if (rule && rule->action == FAILURE_FAIL) {
        *ret_reason = REASON_FAILURE_POLICY;
        return arena_printf(d->a, "%s; failurePolicy says Fail", failure_text(d));
    }
    if (s->restart_policy == RESTART_NEVER && !rule) {
        *ret_reason = REASON_WORKER_FAILED;
        return arena_printf(d->a, "%s; restartPolicy is Never", failure_text(d));
    }
    if (counts && d->progress.restarts_counted >= s->max_restarts) {
        *ret_reason = REASON_MAX_RESTARTS;
        return arena_printf(d->a, "%s; maxRestarts of %d are used up", failure_text(d), s->max_restarts);
    }
    return NULL;
}

static bool was_healthy(const struct group_decision *d)
{
    const struct condition *ready = conditions_old(&d->gang.conditions, READY);
    int64_t enough = MIN(HEALTHY_TIMES * attempt_pause_ms(d, 0), (int64_t)HEALTHY_MAX_MS);
    return ready && ready->status == CONDITION_TRUE && d->v->gang.now_ms - ready->changed_ms >= enough;
}

void failure_answer(struct group_decision *d)
{
    struct group_progress *o = &d->progress;
    const struct failure_rule *rule = rule_of(d);
    bool counts = !d->pods.infrastructure && !(rule && rule->action == FAILURE_IGNORE);
    const char *reason, *why = no_restart(d, rule, counts, &reason);
    o->last_failure = d->pods.failure;
    if (d->pods.gpu_lost)
        conditions_set(&d->gang.conditions, GPU_LOST, CONDITION_TRUE, REASON_OFF_THE_BUS, d->pods.gpu_lost);
    if (why) {
        finish_fail(d, reason, why);
        return;
    }
    o->restarts_in_a_row = was_healthy(d) ? 1 : gang_next(o->restarts_in_a_row);
    o->restarts = gang_next(o->restarts);
    o->restarts_counted = counts ? gang_next(o->restarts_counted) : o->restarts_counted;
    bool agent = workergroup_has_agent(d->wg);
    const char *who = agent && d->wg->spec.restart_policy == RESTART_WORKER ? "its process is" : "all ranks are";
    const char *message = arena_printf(d->a, "%s; %s restarted (restart %d)", failure_text(d), who, o->restarts);
    if (agent && !d->pods.displaced)
        attempt_begin_in_place(d, message);
    else
        attempt_begin(d, REASON_RESTARTING, message);
    // The device plugin of the node may not have noticed the lost GPU yet. On bundles, the PlacementGroup does this.
    if (d->pods.gpu_lost_on && !d->pods.bundles)
        plan_avoid(d->plan, d->pods.gpu_lost_on);
}
