// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_verdict.h"

#include "common/base/str.h"
#include "operator/reconcile/gang_nodes.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>

enum { SETUP_RETRY_MS = 1000 };

static bool passed(const struct gang_decision *g, size_t i)
{
    const struct gang_memory *m = g->v->memory;
    if (i == 0)
        return m->dry_run == DRY_RUN_OK && g->n_dry_runs && m->dry_run_hash == g->dry_runs[0].hash;
    for (size_t k = 0; k < DRY_RUNS_FURTHER; k++)
        if (m->further[k] == g->dry_runs[i].hash)
            return true;
    return false;
}

// The latest dry run that was made, NULL = it was of another spec.
static const struct gang_dry_run *last_dry_run(const struct gang_decision *g)
{
    for (size_t i = 0; i < g->n_dry_runs; i++)
        if (g->dry_runs[i].hash == g->v->memory->dry_run_hash)
            return &g->dry_runs[i];
    return NULL;
}

// The latest dry run was of the present spec, and was refused for a reason that may pass without a change of the spec.
static bool forbidden(const struct gang_decision *g)
{
    return g->v->memory->dry_run == DRY_RUN_NONE && last_dry_run(g);
}

bool gang_verdict_refused_before(const struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    bool of_another = m->dry_run == DRY_RUN_NONE && m->dry_run_hash && !last_dry_run(g);
    return m->refusal_reason && !of_another;
}

bool gang_verdict_refused_lately(const struct gang_decision *g)
{
    return gang_verdict_refused_before(g) && g->v->memory->retry_at_ms > g->v->now_ms;
}

static enum gang_verdict accepted(struct gang_decision *g)
{
    conditions_accept(&g->conditions);
    return GANG_OK;
}

static enum gang_verdict refused(struct gang_decision *g, const char *message)
{
    const struct gang_dry_run *run = last_dry_run(g);
    const char *what =
        run && g->n_dry_runs > 1 ? arena_printf(g->a, "a pod with bundle %" PRId32, run->bundle) : "the template";
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_INVALID_TEMPLATE,
                   arena_printf(g->a, "the API server refuses %s: %s", what, message));
    return GANG_REFUSED;
}

// The API server checks the quota last, so the template has passed. And it may be the present pods that fill the quota.
static enum gang_verdict judge_forbidden(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (str_eq(m->refusal_reason, REASON_QUOTA_EXCEEDED))
        return accepted(g);
    return refused(g, m->refusal_message);
}

void gang_verdict_refusal(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (str_eq(m->refusal_reason, REASON_NAME_CONFLICT))
        conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    else if (forbidden(g))
        judge_forbidden(g);
    else
        conditions_accept(&g->conditions);
}

static bool add_dry_run(struct gang_decision *g, size_t i)
{
    const struct gang_dry_run *run = &g->dry_runs[i];
    // No pod of the namespace may have this name.
    const char *name = arena_printf(g->a, "%s-dry-run-%016" PRIx64, g->name, run->hash), *body;
    if (!g->owner->dry_run(g, run, name, &body))
        return false;
    struct action *x = plan_add(g->plan, ACTION_DRY_RUN, STAGE_FIRST);
    x->body = body;
    x->hash = run->hash;
    x->further = i > 0;
    x->name = arena_printf(g->a, "with bundle %" PRId32, run->bundle);
    return true;
}

// Asks about all pods that are not known yet, at once.
static enum gang_verdict ask(struct gang_decision *g)
{
    for (size_t i = 0; i < g->n_dry_runs; i++)
        if (!passed(g, i) && !add_dry_run(g, i)) {
            plan_init(g->plan, g->a);
            return GANG_REFUSED;
        }
    plan_requeue(g->plan, 0); // the answer changes no object that would wake us
    if (!conditions_judged(&g->conditions, ACCEPTED))
        conditions_set(&g->conditions, ACCEPTED, CONDITION_UNKNOWN, REASON_CHECKING,
                       "the API server checks the template");
    return GANG_UNKNOWN;
}

// The answer also contains the API server's defaults, limit ranges and injected containers.
enum gang_verdict gang_verdict(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    size_t n = 0;
    if (g->needs_setup && !g->v->setup) {
        plan_requeue(g->plan, SETUP_RETRY_MS);
        return GANG_UNKNOWN;
    }
    if (m->dry_run == DRY_RUN_REFUSED && last_dry_run(g))
        return refused(g, m->dry_run_message);
    if (g->refused && forbidden(g) && gang_verdict_refused_lately(g)) {
        enum gang_verdict verdict = judge_forbidden(g);
        if (verdict == GANG_REFUSED)
            plan_requeue(g->plan, m->retry_at_ms - g->v->now_ms);
        return verdict;
    }
    while (n < g->n_dry_runs && passed(g, n))
        n++;
    return n < g->n_dry_runs ? ask(g) : accepted(g);
}

enum gang_verdict gang_verdict_of_change(struct gang_decision *g, bool runs)
{
    enum gang_verdict verdict = gang_verdict(g);
    const char *why = verdict == GANG_OK && runs && passed(g, 0) ? gang_nodes_hopeless(g) : NULL;
    if (!why)
        return verdict;
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_INFEASIBLE, why);
    return GANG_REFUSED;
}
