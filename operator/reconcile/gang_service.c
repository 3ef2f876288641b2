// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_service.h"

#include "common/base/str.h"
#include "operator/reconcile/gang_verdict.h"
#include "operator/reconcile/reason.h"

enum { NAME_CONFLICT_RETRY_MS = 10 * 1000 };

static const char *missing(struct gang_decision *g)
{
    return g->v->service ? NULL : g->owner->service(g);
}

void gang_service_add(struct gang_decision *g, int stage)
{
    const char *body = missing(g);
    if (!body)
        return;
    struct action *x = plan_add(g->plan, ACTION_CREATE_SERVICE, stage);
    x->name = g->name;
    x->body = body;
    plan_requeue(g->plan, 0); // a name that is taken changes no object that would wake us
}

bool gang_service_taken(struct gang_decision *g)
{
    const struct service *s = g->v->service;
    if (!s || str_eq(s->obj.meta.owner.uid, g->object->meta.uid))
        return false;
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, REASON_NAME_CONFLICT,
                   arena_printf(g->a,
                                "a Service %s exists that does not belong to this %s: delete it, or give the group "
                                "another name",
                                s->obj.meta.name, kind_info(g->object->kind)->kind));
    plan_requeue(g->plan, NAME_CONFLICT_RETRY_MS); // nobody tells us when a Service of another owner goes
    return true;
}

// The API server refused the Service: another owner has the name, or a quota allows no more Services. Accepted says so,
// also while the plan tries again. Returns true if it tries later.
static bool is_refused(struct gang_decision *g)
{
    const struct gang_memory *m = g->v->memory;
    if (!gang_verdict_refused_before(g) || !missing(g))
        return false;
    conditions_set(&g->conditions, ACCEPTED, CONDITION_FALSE, m->refusal_reason, m->refusal_message);
    if (!gang_verdict_refused_lately(g))
        return false;
    plan_requeue(g->plan, m->retry_at_ms - g->v->now_ms);
    return true;
}

void gang_service_keep(struct gang_decision *g)
{
    if (!gang_service_taken(g) && !is_refused(g))
        gang_service_add(g, STAGE_SECOND);
}
