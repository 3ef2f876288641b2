// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/hold.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/census.h"
#include "operator/reconcile/outcome.h"
#include "operator/reconcile/reason.h"

#include <string.h>

enum { MESSAGE_MAX = 4096, NOTE_ENOUGH = 1000 };

static const char *const types[HOLD_CONDITIONS] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY, COND_FAILED};

const struct condition *hold_old(const struct hold *h, enum hold_condition which)
{
    return condition_find(h->plg->status.conditions, h->plg->status.n_conditions, types[which]);
}

bool hold_was(const struct hold *h, enum hold_condition which)
{
    const struct condition *old = hold_old(h, which);
    return old && old->status == CONDITION_TRUE;
}

void hold_set(struct hold *h, enum hold_condition which, enum condition_status status, const char *reason,
              const char *message)
{
    h->conditions[which] = (struct condition){
        .type = types[which],
        .status = status,
        .reason = reason,
        .message = message,
        .observed_generation = h->plg->obj.meta.generation,
    };
}

void hold_wait(struct hold *h, const char *reason, const char *message)
{
    hold_set(h, HOLD_SCHEDULED, CONDITION_FALSE, reason, message);
    hold_set(h, HOLD_READY, CONDITION_FALSE, reason, message);
}

void hold_init(struct hold *h)
{
    for (int i = 0; i < HOLD_CONDITIONS; i++) {
        const struct condition *old = hold_old(h, (enum hold_condition)i);
        if (old)
            h->conditions[i] = *old;
        else
            hold_set(h, (enum hold_condition)i, CONDITION_UNKNOWN, REASON_PENDING, "");
    }
    hold_set(h, HOLD_FAILED, CONDITION_FALSE, REASON_NO_FAILURE, "");
    h->incarnation = h->reservation.incarnation;
}

void hold_delete(struct hold *h, const struct pod *p, int stage)
{
    const struct placementgroup_view *v = h->v;
    bool lost = census_node_gone(v->cluster, p, h->plg->spec.node_lost_s, v->now_ms, NULL);
    plan_delete_pod(h->plan, p, lost, stage);
}

static void build(struct hold *h, struct placementgroup_status *ret)
{
    const struct reservation *r = &h->reservation;
    struct condition *conditions = arena_memdup(h->a, h->conditions, sizeof h->conditions);
    *ret = (struct placementgroup_status){
        .observed_generation = h->plg->obj.meta.generation,
        .bundles = h->bundles.n,
        .bound_bundles = r->bound,
        .gpus = h->bundles.gpus,
        .incarnation = h->incarnation,
        .conditions = conditions,
        .n_conditions = HOLD_CONDITIONS,
    };
    ret->n_placements = reservation_placements(r, &h->bundles, h->a, &ret->placements);
    ret->nodes = (int32_t)ret->n_placements;
    if (!h->bundles.n) { // nobody knows what the spec asks for; the pods of an earlier one are still there
        const struct placementgroup_status *old = &h->plg->status;
        ret->bundles = old->bundles;
        ret->bound_bundles = old->bound_bundles;
        ret->gpus = old->gpus;
        ret->nodes = old->nodes;
        ret->placements = old->placements;
        ret->n_placements = old->n_placements;
    }
    for (int i = 0; i < HOLD_CONDITIONS; i++) {
        struct condition *now = &conditions[i];
        const struct condition *old = hold_old(h, (enum hold_condition)i);
        now->message = arena_clip(h->a, now->message, MESSAGE_MAX);
        now->changed_ms = old && old->status == now->status && old->changed_ms ? old->changed_ms : h->v->now_ms;
    }
}

static bool became(const struct hold *h, enum hold_condition which)
{
    const struct condition *old = hold_old(h, which), *now = &h->conditions[which];
    return !old || old->status != now->status || !str_eq(old->reason, now->reason);
}

static const char *placements_text(const struct placementgroup_status *s, struct arena *a)
{
    const char *text = "";
    for (size_t i = 0; i < s->n_placements && strlen(text) < NOTE_ENOUGH; i++)
        text = arena_printf(a, "%s%s%s on %s", text, i ? ", " : "bundles ", s->placements[i].bundles,
                            s->placements[i].node);
    return text;
}

// As for groups (outcome.c): all derive from the change of the status, so that repeating a decision repeats no event.
static void add_events(struct hold *h, const struct placementgroup_status *s, int stage)
{
    static const char *const waiting[] = {REASON_INFEASIBLE, REASON_INSUFFICIENT, REASON_QUOTA_EXCEEDED,
                                          REASON_FORBIDDEN,  REASON_BIND_TIMEOUT, NULL};
    static const char *const stuck[] = {REASON_IMAGE, REASON_CONTAINER_CONFIG, NULL};
    const struct condition *c = h->conditions;
    bool refused = c[HOLD_ACCEPTED].status == CONDITION_FALSE && became(h, HOLD_ACCEPTED);
    if (refused)
        plan_add_event(h->plan, stage, true, c[HOLD_ACCEPTED].reason, c[HOLD_ACCEPTED].message);
    if (became(h, HOLD_SCHEDULED)) {
        if (c[HOLD_SCHEDULED].status == CONDITION_TRUE)
            plan_add_event(h->plan, stage, false, "Scheduled", placements_text(s, h->a));
        else if (outcome_reason_in(c[HOLD_SCHEDULED].reason, waiting) && !refused)
            plan_add_event(h->plan, stage, true, c[HOLD_SCHEDULED].reason, c[HOLD_SCHEDULED].message);
    }
    if (became(h, HOLD_READY) && outcome_reason_in(c[HOLD_READY].reason, stuck))
        plan_add_event(h->plan, stage, true, c[HOLD_READY].reason, c[HOLD_READY].message);
    if (h->incarnation > h->plg->status.incarnation && str_eq(c[HOLD_READY].reason, REASON_RESTARTING))
        plan_add_event(h->plan, stage, true, REASON_RESTARTING, c[HOLD_READY].message);
}

static bool urgent(const struct hold *h)
{
    static const char *const passing[] = {
        REASON_PENDING, REASON_CHECKING, REASON_CREATING, REASON_BINDING, REASON_STARTING, REASON_TERMINATING, NULL};
    return h->incarnation != h->plg->status.incarnation ||
           (became(h, HOLD_READY) && !outcome_reason_in(h->conditions[HOLD_READY].reason, passing));
}

static bool only_words_differ(const struct hold *h, const struct placementgroup_status *s)
{
    struct placementgroup_status same = *s;
    same.conditions = arena_memdup(h->a, s->conditions, s->n_conditions * sizeof *s->conditions);
    for (int i = 0; i < HOLD_CONDITIONS; i++) {
        const struct condition *old = hold_old(h, (enum hold_condition)i);
        if (old)
            same.conditions[i].message = old->message;
    }
    return placementgroup_status_equal(&same, &h->plg->status);
}

static int64_t settle_ms(struct hold *h, const struct placementgroup_status *s)
{
    bool first = !h->plg->status.n_conditions;
    return outcome_settle_ms(first, !first && only_words_differ(h, s), h->v->moving);
}

void hold_commit(struct hold *h, bool now)
{
    struct placementgroup_status s;
    build(h, &s);
    if (placementgroup_status_equal(&s, &h->plg->status))
        return;
    if (!now && !urgent(h) &&
        plan_defers_status(h->plan, h->v->memory->status_wanted_ms, settle_ms(h, &s), h->v->now_ms))
        return;
    // First where it has to be; else with the creations, which must not wait for it.
    int stage = now ? STAGE_FIRST : STAGE_SECOND;
    plan_add_status(h->plan, stage, placementgroup_status_patch(&s, h->a), h->plg->obj.meta.resource_version);
    add_events(h, &s, stage + 1);
}
