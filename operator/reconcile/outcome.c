// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/outcome.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <string.h>

enum {
    FIRST_SETTLE_MS = 250, // nothing is shown yet
    SETTLE_MS = 1000,
    SETTLE_WORDS_MS = 10 * 1000, // only the words of a message are new
    SETTLE_MAX_MS = 60 * 1000,
    SETTLE_CROWD = 2, // so many groups that move at once are written at that pace, more of them share it
    NOTE_MAX = 1000,
    MESSAGE_MAX = 4096,
};

static const char *const types[OUTCOME_CONDITIONS] = {COND_ACCEPTED,  COND_SCHEDULED, COND_READY,
                                                      COND_SUCCEEDED, COND_FAILED,    COND_SUSPENDED};

const struct condition *outcome_old(const struct workergroup *wg, enum outcome_condition which)
{
    return condition_find(wg->status.conditions, wg->status.n_conditions, types[which]);
}

bool outcome_was(const struct workergroup *wg, enum outcome_condition which)
{
    const struct condition *old = outcome_old(wg, which);
    return old && old->status == CONDITION_TRUE;
}

bool outcome_old_spec(const struct workergroup *wg)
{
    return wg->status.observed_generation != wg->obj.meta.generation;
}

void outcome_init(struct outcome *o, const struct workergroup *wg, const struct census *c)
{
    const struct workergroup_status *s = &wg->status;
    *o = (struct outcome){
        .generation = wg->obj.meta.generation,
        .attempt = c->attempt,
        .incarnation = c->incarnation,
        .restarts = MAX(s->restarts, 0),
        .restarts_counted = MAX(s->restarts_counted, 0),
        .restarts_in_a_row = MAX(s->restarts_in_a_row, 0),
        .last_failure = s->last_failure,
        .revision = s->revision,
    };
    outcome_alive(o);
    for (int i = 0; i < OUTCOME_CONDITIONS; i++) {
        const struct condition *old = outcome_old(wg, (enum outcome_condition)i);
        if (old)
            o->conditions[i] = *old;
        else if (!o->conditions[i].type)
            outcome_set(o, (enum outcome_condition)i, CONDITION_UNKNOWN, REASON_PENDING, "");
    }
}

void outcome_alive(struct outcome *o)
{
    outcome_set(o, SUCCEEDED, CONDITION_FALSE, REASON_IN_PROGRESS, "");
    outcome_set(o, FAILED, CONDITION_FALSE, REASON_NO_FAILURE, "");
    outcome_set(o, SUSPENDED, CONDITION_FALSE, REASON_NOT_SUSPENDED, "");
}

void outcome_set(struct outcome *o, enum outcome_condition which, enum condition_status status, const char *reason,
                 const char *message)
{
    o->conditions[which] = (struct condition){
        .type = types[which],
        .status = status,
        .reason = reason,
        .message = message,
        .observed_generation = o->generation,
    };
}

void outcome_wait(struct outcome *o, const char *reason, const char *message)
{
    outcome_set(o, SCHEDULED, CONDITION_FALSE, reason, message);
    outcome_set(o, READY, CONDITION_FALSE, reason, message);
}

static int32_t group_gpus(const struct group_view *v, const struct census *c)
{
    int64_t each = -1;
    if (c->pooled)
        return c->pooled->gpus;
    for (int32_t i = 0; i < c->replicas && each < 0; i++)
        if (c->current[i])
            each = resources_get(&c->current[i]->requests, RESOURCE_GPU);
    if (each < 0 && v->memory->needs)
        each = resources_get(&v->memory->needs->requests, RESOURCE_GPU);
    return each < 0 ? v->wg->status.gpus : (int32_t)MIN(each / 1000, INT32_MAX / c->replicas) * c->replicas;
}

static const char *master_addr(const struct workergroup *wg, const struct census *c, struct arena *a)
{
    if (!c->pooled)
        return arena_printf(a, "%s:%d", group_master_host(wg, a), wg->spec.rendezvous_port);
    return c->pooled->master_host ? arena_printf(a, "%s:%d", c->pooled->master_host, c->pooled->master_port) : NULL;
}

// On bundles it is that of the PlacementGroups, of those that are there.
static const char *strategy_of(const struct group_view *v)
{
    const struct placementgroup *first = NULL;
    for (size_t i = 0; i < v->wg->spec.n_placement_groups; i++) {
        const struct placementgroup *p = v->pools[i];
        if (p && first && p->spec.strategy != first->spec.strategy)
            return "Mixed";
        first = first ? first : p;
    }
    return strategy_name(first ? first->spec.strategy : v->wg->spec.strategy);
}

static void build(const struct outcome *o, const struct group_view *v, const struct census *c, struct arena *a,
                  struct workergroup_status *ret)
{
    const struct workergroup *wg = v->wg;
    *ret = (struct workergroup_status){
        .observed_generation = wg->obj.meta.generation,
        .world_size = group_world_size(wg),
        .ready_workers = c->ready_workers,
        .replicas = c->existing,
        .ready_replicas = c->ready,
        .scheduled_replicas = c->bound,
        .gpus = group_gpus(v, c),
        .attempt = o->attempt,
        .incarnation = o->incarnation,
        .restarts = o->restarts,
        .restarts_counted = o->restarts_counted,
        .restarts_in_a_row = o->restarts_in_a_row,
        .master_addr = master_addr(wg, c, a),
        .selector = group_selector(wg, a),
        .strategy = strategy_of(v),
        .last_failure = o->last_failure,
        .revision = o->revision,
    };
    if (o->of_before && wg->status.world_size) {
        ret->world_size = wg->status.world_size;
        ret->gpus = wg->status.gpus;
        ret->master_addr = wg->status.master_addr;
        ret->strategy = wg->status.strategy;
    }
    ret->n_placements = census_placements(c, a, &ret->placements);
    ret->conditions = arena_memdup(a, o->conditions, sizeof o->conditions);
    ret->n_conditions = OUTCOME_CONDITIONS;
    ret->last_failure.message = arena_clip(a, ret->last_failure.message, MESSAGE_MAX);
    for (int i = 0; i < OUTCOME_CONDITIONS; i++) {
        struct condition *now = &ret->conditions[i];
        const struct condition *old = outcome_old(wg, (enum outcome_condition)i);
        now->message = arena_clip(a, now->message, MESSAGE_MAX);
        now->changed_ms = old && old->status == now->status && old->changed_ms ? old->changed_ms : v->now_ms;
    }
}

bool outcome_reason_in(const char *reason, const char *const *list)
{
    for (; *list; list++)
        if (str_eq(reason, *list))
            return true;
    return false;
}

bool outcome_keeps_reason(const struct condition *ready)
{
    static const char *const reasons[] = {REASON_RESTARTING,
                                          REASON_TERMINATING,
                                          REASON_BIND_TIMEOUT,
                                          REASON_INSUFFICIENT,
                                          REASON_INFEASIBLE,
                                          REASON_QUOTA_EXCEEDED,
                                          REASON_FORBIDDEN,
                                          REASON_NAME_CONFLICT,
                                          REASON_INVALID_TEMPLATE,
                                          REASON_BACKOFF,
                                          NULL};
    return ready && outcome_reason_in(ready->reason, reasons);
}

static bool became(const struct workergroup *wg, const struct outcome *o, enum outcome_condition which)
{
    const struct condition *old = outcome_old(wg, which), *now = &o->conditions[which];
    return !old || old->status != now->status || !str_eq(old->reason, now->reason);
}

static const char *placements_text(const struct workergroup_status *s, struct arena *a)
{
    const char *text = "";
    for (size_t i = 0; i < s->n_placements && strlen(text) < NOTE_MAX; i++)
        text = arena_printf(a, "%s%s%s on %s", text, i ? ", " : "replicas ", s->placements[i].replicas,
                            s->placements[i].node);
    return text;
}

// One event for each change that a person would want to see later; all derive from the change of the status, so that
// repeating a decision repeats no event.
static void add_events(const struct outcome *o, const struct group_view *v, const struct workergroup_status *s,
                       int stage, struct arena *a, struct plan *plan)
{
    static const char *const waiting[] = {REASON_INFEASIBLE,          REASON_INSUFFICIENT,  REASON_QUOTA_EXCEEDED,
                                          REASON_FORBIDDEN,           REASON_BIND_TIMEOUT,  REASON_PLACEMENT_NOT_FOUND,
                                          REASON_PLACEMENT_NOT_READY, REASON_PORT_CONFLICT, NULL};
    const struct workergroup *wg = v->wg;
    const struct condition *c = o->conditions;
    bool refused = c[ACCEPTED].status == CONDITION_FALSE && became(wg, o, ACCEPTED);
    if (refused)
        plan_add_event(plan, stage, true, c[ACCEPTED].reason, c[ACCEPTED].message);
    if (became(wg, o, SCHEDULED)) {
        if (c[SCHEDULED].status == CONDITION_TRUE)
            plan_add_event(plan, stage, false, "Scheduled", placements_text(s, a));
        else if (outcome_reason_in(c[SCHEDULED].reason, waiting) && !refused)
            plan_add_event(plan, stage, true, c[SCHEDULED].reason, c[SCHEDULED].message);
    }
    if (c[READY].status == CONDITION_FALSE && became(wg, o, READY) &&
        (str_eq(c[READY].reason, REASON_IMAGE) || str_eq(c[READY].reason, REASON_CONTAINER_CONFIG)))
        plan_add_event(plan, stage, true, c[READY].reason, c[READY].message);
    if (o->restarts > wg->status.restarts)
        plan_add_event(plan, stage, true, REASON_RESTARTING, c[READY].message);
    if (c[FAILED].status == CONDITION_TRUE && became(wg, o, FAILED))
        plan_add_event(plan, stage, true, c[FAILED].reason, c[FAILED].message);
    if (c[SUCCEEDED].status == CONDITION_TRUE && became(wg, o, SUCCEEDED))
        plan_add_event(plan, stage, false, c[SUCCEEDED].reason, c[SUCCEEDED].message);
    if (outcome_old(wg, SUSPENDED) && became(wg, o, SUSPENDED))
        plan_add_event(plan, stage, false, c[SUSPENDED].status == CONDITION_TRUE ? "Suspended" : "Resumed",
                       c[SUSPENDED].status == CONDITION_TRUE ? c[SUSPENDED].message : "spec.suspend is false");
}

// What is worth a write of its own: a new attempt, or a Ready that will stay for a while.
static bool urgent(const struct outcome *o, const struct workergroup *wg)
{
    static const char *const passing[] = {REASON_PENDING,  REASON_CHECKING,    REASON_CREATING,   REASON_BINDING,
                                          REASON_STARTING, REASON_TERMINATING, REASON_COMPLETING, NULL};
    bool suspended = o->conditions[SUSPENDED].status == CONDITION_TRUE;
    if (suspended != outcome_was(wg, SUSPENDED) || o->attempt != MAX(wg->status.attempt, 1) ||
        o->incarnation != wg->status.incarnation)
        return true;
    return became(wg, o, READY) && !outcome_reason_in(o->conditions[READY].reason, passing);
}

// Only the messages differ, such as the counts of a group that waits for room in a busy cluster. One that sends the
// user to another group is not mere words: that group may have gone.
static bool only_words_differ(const struct workergroup_status *s, const struct workergroup *wg, struct arena *a)
{
    struct workergroup_status same = *s;
    same.conditions = arena_memdup(a, s->conditions, s->n_conditions * sizeof *s->conditions);
    for (int i = 0; i < OUTCOME_CONDITIONS; i++) {
        const struct condition *old = outcome_old(wg, (enum outcome_condition)i);
        if (old && !str_eq(old->reason, REASON_PORT_CONFLICT))
            same.conditions[i].message = old->message;
    }
    return workergroup_status_equal(&same, &wg->status);
}

int64_t outcome_settle_ms(bool first, bool only_words, int32_t moving)
{
    int64_t ms = first ? FIRST_SETTLE_MS : only_words ? SETTLE_WORDS_MS : SETTLE_MS;
    return MIN(ms * (1 + moving / SETTLE_CROWD), SETTLE_MAX_MS);
}

static int64_t settle_ms(const struct workergroup_status *s, const struct group_view *v, struct arena *a)
{
    bool first = !v->wg->status.n_conditions;
    return outcome_settle_ms(first, !first && only_words_differ(s, v->wg, a), v->moving);
}

void outcome_commit(const struct outcome *o, const struct group_view *v, const struct census *c, bool now,
                    struct arena *a, struct plan *plan)
{
    struct workergroup_status s;
    build(o, v, c, a, &s);
    if (workergroup_status_equal(&s, &v->wg->status))
        return;
    if (!now && !urgent(o, v->wg) &&
        plan_defers_status(plan, v->memory->status_wanted_ms, settle_ms(&s, v, a), v->now_ms))
        return;
    // First where it has to be; else with the creations, which must not wait for it. Events follow what they tell of,
    // so that a write that fails and is decided anew does not repeat them.
    int stage = now ? STAGE_FIRST : STAGE_SECOND;
    plan_add_status(plan, stage, workergroup_status_patch(&s, a), v->wg->obj.meta.resource_version);
    add_events(o, v, &s, stage + 1, a, plan);
}
