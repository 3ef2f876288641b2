// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/conditions.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/reason.h"

enum {
    FIRST_SETTLE_MS = 250, // the object has no status yet
    SETTLE_MS = 1000,
    SETTLE_WORDS_MS = 10 * 1000, // only the text of a message is new
    SETTLE_MAX_MS = 60 * 1000,
    SETTLE_STATUSES = 2, // this many objects keep the normal pace; more objects share it
};

static const char *const types[CONDITION_KINDS] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY,   COND_SUCCEEDED,
                                                   COND_FAILED,   COND_SUSPENDED, COND_GPU_LOST};

static const char *const alive[CONDITION_KINDS] = {
    [SUCCEEDED] = REASON_IN_PROGRESS, [FAILED] = REASON_NO_FAILURE, [SUSPENDED] = REASON_NOT_SUSPENDED};

static bool is_one_of(const char *text, const char *const *list) // NULL-terminated
{
    for (; *list; list++)
        if (str_eq(text, *list))
            return true;
    return false;
}

const struct condition *conditions_old(const struct conditions *c, enum condition_kind which)
{
    return condition_find(c->status, c->n_status, types[which]);
}

bool conditions_was(const struct conditions *c, enum condition_kind which)
{
    const struct condition *old = conditions_old(c, which);
    return old && old->status == CONDITION_TRUE;
}

bool conditions_judged(const struct conditions *c, enum condition_kind which)
{
    const struct condition *old = conditions_old(c, which);
    return old && old->status != CONDITION_UNKNOWN && old->observed_generation == c->generation;
}

// The status has no such condition, or one with another status or reason.
static bool became(const struct conditions *c, enum condition_kind which)
{
    const struct condition *old = conditions_old(c, which), *now = &c->now[which];
    return !old || old->status != now->status || !str_eq(old->reason, now->reason);
}

void conditions_set(struct conditions *c, enum condition_kind which, enum condition_status status, const char *reason,
                    const char *message)
{
    c->now[which] = (struct condition){
        .type = types[which],
        .status = status,
        .reason = reason,
        .message = message,
        .observed_generation = c->generation,
    };
}

void conditions_date(struct conditions *c, enum condition_kind which, int64_t generation)
{
    c->now[which].observed_generation = generation;
}

void conditions_init(struct conditions *c, const char *const *of_object, int64_t generation,
                     const struct condition *status, size_t n_status)
{
    *c = (struct conditions){.status = status, .n_status = n_status, .generation = generation};
    for (int i = 0; i < CONDITION_KINDS; i++) {
        const struct condition *old = conditions_old(c, (enum condition_kind)i);
        if (!is_one_of(types[i], of_object))
            continue;
        if (old)
            c->now[i] = *old;
        else if (alive[i])
            conditions_set(c, (enum condition_kind)i, CONDITION_FALSE, alive[i], "");
        else if (i != GPU_LOST)
            conditions_set(c, (enum condition_kind)i, CONDITION_UNKNOWN, REASON_PENDING, "");
    }
}

void conditions_alive(struct conditions *c)
{
    for (int i = 0; i < CONDITION_KINDS; i++)
        if (alive[i] && c->now[i].type)
            conditions_set(c, (enum condition_kind)i, CONDITION_FALSE, alive[i], "");
}

void conditions_accept(struct conditions *c)
{
    conditions_set(c, ACCEPTED, CONDITION_TRUE, REASON_VALID, "");
}

void conditions_wait(struct conditions *c, const char *reason, const char *message)
{
    conditions_set(c, SCHEDULED, CONDITION_FALSE, reason, message);
    conditions_set(c, READY, CONDITION_FALSE, reason, message);
}

bool conditions_keep_reason(const struct conditions *c)
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
    const struct condition *ready = conditions_old(c, READY);
    return ready && is_one_of(ready->reason, reasons);
}

int64_t conditions_settle_ms(bool first, bool only_words, int32_t waiting_statuses)
{
    int64_t ms = first ? FIRST_SETTLE_MS : only_words ? SETTLE_WORDS_MS : SETTLE_MS;
    return MIN(ms * (1 + waiting_statuses / SETTLE_STATUSES), SETTLE_MAX_MS);
}

// The conditions as they are written. With old_words, they have the messages of the present status. The exception is a
// message that sends the user to another group, because that group may have gone.
static struct condition *written(const struct conditions *c, bool old_words, int64_t now_ms, struct arena *a,
                                 size_t *ret_n)
{
    struct condition *items = arena_array(a, CONDITION_KINDS, sizeof *items);
    *ret_n = 0;
    for (int i = 0; i < CONDITION_KINDS; i++) {
        const struct condition *old = conditions_old(c, (enum condition_kind)i);
        if (!c->now[i].type)
            continue;
        struct condition *x = &items[(*ret_n)++];
        *x = c->now[i];
        x->message = arena_clip(a, x->message, CONDITION_MESSAGE_MAX);
        x->changed_ms = old && old->status == x->status && old->changed_ms ? old->changed_ms : now_ms;
        if (old_words && old && !str_eq(old->reason, REASON_PORT_CONFLICT))
            x->message = old->message;
    }
    return items;
}

static void draft(const struct conditions *c, const struct status_writer *w, bool old_words, struct arena *a,
                  struct status_draft *ret)
{
    size_t n;
    struct condition *items = written(c, old_words, w->now_ms, a, &n);
    *ret = (struct status_draft){0};
    w->draft(w->ctx, items, n, ret);
}

static void add_event(const struct conditions *c, enum condition_kind which, bool warning, int stage, struct plan *plan)
{
    plan_add_event(plan, stage, warning, c->now[which].reason, c->now[which].message);
}

// One Event for each change that a person may want to see later. All Events follow from changes of the status, so a
// repeated decision repeats no Event.
static void add_events(const struct conditions *c, const struct status_draft *d, int stage, struct plan *plan)
{
    static const char *const waiting[] = {REASON_INFEASIBLE,          REASON_INSUFFICIENT,  REASON_QUOTA_EXCEEDED,
                                          REASON_FORBIDDEN,           REASON_BIND_TIMEOUT,  REASON_PLACEMENT_NOT_FOUND,
                                          REASON_PLACEMENT_NOT_READY, REASON_PORT_CONFLICT, NULL};
    static const char *const stuck[] = {REASON_IMAGE, REASON_CONTAINER_CONFIG, NULL};
    const struct condition *now = c->now;
    bool refused = now[ACCEPTED].status == CONDITION_FALSE && became(c, ACCEPTED);
    if (d->code)
        plan_add_event(plan, stage, false, "CodeByValue", d->code);
    if (refused)
        add_event(c, ACCEPTED, true, stage, plan);
    if (became(c, SCHEDULED)) {
        if (now[SCHEDULED].status == CONDITION_TRUE)
            plan_add_event(plan, stage, false, "Scheduled", d->placements);
        else if (is_one_of(now[SCHEDULED].reason, waiting) && !refused)
            add_event(c, SCHEDULED, true, stage, plan);
    }
    if (now[READY].status == CONDITION_FALSE && became(c, READY) && is_one_of(now[READY].reason, stuck))
        add_event(c, READY, true, stage, plan);
    if (d->slow && now[READY].status == CONDITION_TRUE && became(c, READY))
        plan_add_event(plan, stage, true, "PreloadRefused", d->slow);
    if (d->restarted)
        plan_add_event(plan, stage, true, REASON_RESTARTING, now[READY].message);
    if (now[GPU_LOST].type && now[GPU_LOST].status == CONDITION_TRUE && became(c, GPU_LOST))
        add_event(c, GPU_LOST, true, stage, plan);
    if (now[FAILED].status == CONDITION_TRUE && became(c, FAILED))
        add_event(c, FAILED, true, stage, plan);
    if (now[SUCCEEDED].status == CONDITION_TRUE && became(c, SUCCEEDED))
        add_event(c, SUCCEEDED, false, stage, plan);
    if (conditions_old(c, SUSPENDED) && became(c, SUSPENDED)) {
        bool suspended = now[SUSPENDED].status == CONDITION_TRUE;
        plan_add_event(plan, stage, false, suspended ? "Suspended" : "Resumed",
                       suspended ? now[SUSPENDED].message : "spec.suspend is false");
    }
}

// Ready has changed, and will stay like this for a while.
static bool lasts(const struct conditions *c)
{
    static const char *const passing[] = {REASON_PENDING,  REASON_CHECKING,    REASON_CREATING,   REASON_BINDING,
                                          REASON_STARTING, REASON_TERMINATING, REASON_COMPLETING, NULL};
    return became(c, READY) && !is_one_of(c->now[READY].reason, passing);
}

static int64_t settle_ms(const struct conditions *c, const struct status_writer *w, struct arena *a)
{
    struct status_draft same;
    bool first = !c->n_status;
    draft(c, w, true, a, &same);
    return conditions_settle_ms(first, !first && !same.patch, w->waiting_statuses);
}

void conditions_commit(const struct conditions *c, const struct status_writer *w, bool at_once, struct arena *a,
                       struct plan *plan)
{
    struct status_draft d;
    draft(c, w, false, a, &d);
    if (!d.patch)
        return;
    if (!at_once && !d.urgent && !lasts(c) && plan_defers_status(plan, w->wanted_ms, settle_ms(c, w, a), w->now_ms))
        return;
    // The status is written first if it must be. Otherwise it is written together with the creations, which must not
    // wait for it. Events follow the change that they report, so a failed write that is decided again does not repeat
    // them.
    int stage = at_once ? STAGE_FIRST : STAGE_SECOND;
    plan_add_status(plan, stage, d.patch, w->resource_version);
    add_events(c, &d, stage + 1, plan);
}
