// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/calls.h"

#include "common/base/str.h"
#include "operator/reconcile/reason.h"

static const struct condition *condition_of(const struct workergroup *wg, const char *type)
{
    return condition_find(wg->status.conditions, wg->status.n_conditions, type);
}

static const struct condition *true_condition(const struct workergroup *wg, const char *type)
{
    const struct condition *c = condition_of(wg, type);
    return c && c->status == CONDITION_TRUE ? c : NULL;
}

static const char *text_of(const struct condition *c, struct arena *a)
{
    return arena_printf(a, "%s: %s", c->reason ? c->reason : "", c->message ? c->message : "");
}

// The present spec is refused, and nothing of an earlier spec runs: its pods would still be Scheduled.
static const char *not_accepted(const struct workergroup *wg, struct arena *a)
{
    const struct condition *c = condition_of(wg, COND_ACCEPTED), *scheduled = condition_of(wg, COND_SCHEDULED);
    if (!c || c->status != CONDITION_FALSE || c->observed_generation != wg->obj.meta.generation)
        return NULL;
    if (!scheduled || scheduled->status != CONDITION_FALSE || !str_eq(scheduled->reason, c->reason))
        return NULL;
    return arena_printf(a, "it is not accepted: %s", text_of(c, a));
}

const char *calls_refusal(const struct workergroup *wg, struct arena *a)
{
    const struct condition *c;
    if (wg->obj.meta.deleted_ms)
        return "it is being deleted";
    if (wg->spec.runtime == RUNTIME_PLAIN)
        return "its runtime is Plain; calls need runtime Agent and a worker.module or worker.python";
    if ((c = true_condition(wg, COND_FAILED)))
        return arena_printf(a, "it has failed: %s", c->message ? c->message : "");
    if (true_condition(wg, COND_SUCCEEDED))
        return "all of its processes have succeeded";
    if (wg->spec.suspend)
        return "it is suspended";
    return not_accepted(wg, a);
}

const char *calls_reason(const struct workergroup *wg)
{
    const struct condition *c = condition_of(wg, COND_READY);
    return c ? c->reason : NULL;
}

const char *calls_status(const struct workergroup *wg, struct arena *a)
{
    const struct condition *c = condition_of(wg, COND_READY);
    return c && c->status != CONDITION_TRUE ? text_of(c, a) : NULL;
}
