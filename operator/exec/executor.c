// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/executor.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"
#include "operator/api/object_decode.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>
#include <string.h>

struct execution {
    struct executor x;
    const struct object *owner; // referenced
    int32_t incarnation;
    struct arena arena; // contains the plan
    struct plan plan;
    struct observations *observations;
    size_t next;      // the first action that has not begun
    size_t stage_end; // after the last action of its stage
    int in_flight;
    bool refused; // a dry run was refused; the answers of other dry runs are then not noted
    bool stopped; // something needs a new decision: no error, but no further action begins
    struct err err;
    execution_fn done;
    void *ctx;
};

struct step { // one action in progress; it is in the arena of the execution
    struct execution *e;
    const struct action *action;
};

static void advance(struct execution *e);

// All pods of the plan take their room at the beginning, also the pods of later stages. The next decision must not find
// that room free.
static void reserve(const struct execution *e)
{
    for (size_t i = 0; i < e->plan.n; i++) {
        const struct action *a = &e->plan.actions[i];
        if (a->kind == ACTION_CREATE_POD)
            cluster_assume(e->x.cluster, e->owner->meta.ns, a->name, a->node, a->requests);
    }
}

static void begin_stage(struct execution *e)
{
    const struct plan *p = &e->plan;
    e->stage_end = e->next;
    while (e->stage_end < p->n && p->actions[e->stage_end].stage == p->actions[e->next].stage)
        e->stage_end++;
}

static void finish(struct execution *e)
{
    for (; e->next < e->plan.n; e->next++)
        if (e->plan.actions[e->next].kind == ACTION_CREATE_POD)
            cluster_unassume(e->x.cluster, e->owner->meta.ns, e->plan.actions[e->next].name);
    struct err err = e->err;
    execution_fn done = e->done;
    void *ctx = e->ctx;
    object_unref(e->owner);
    arena_done(&e->arena);
    free(e);
    done(ctx, &err);
}

static void step_end(struct step *s, const struct err *err)
{
    struct execution *e = s->e;
    if (err && err->code && !e->err.code)
        e->err = *err;
    e->in_flight--;
    advance(e);
}

static void refused(struct step *s, const char *reason, const char *message)
{
    struct execution *e = s->e;
    e->stopped = true;
    observations_refused(e->observations, e->incarnation, reason, message, clock_wall_ms(e->x.clock));
}

// The answer of the API server is the current version of the object. The store gets it now and does not wait for the
// watch.
static void remember(const struct step *s, enum kind kind, const struct kube_response *response)
{
    struct store *store = s->e->x.stores[kind];
    struct err ignored = ERR_INIT; // the watch delivers it again, and reports that it cannot be decoded
    const struct object *o;
    struct object_peek g;
    if (object_peek(response->body, response->len, &g) && store_is_past(store, g.version))
        return;
    if (object_decode(kind, response->body, response->len, &o, &ignored) < 0)
        return;
    store_wrote(store, o);
    object_unref(o);
}

static const char *refusal_reason(const struct err *err)
{
    bool quota = err->code == ERR_FORBIDDEN && strstr(err->msg, "exceeded quota");
    return quota ? REASON_QUOTA_EXCEEDED : REASON_FORBIDDEN;
}

static void take_dry_run(struct step *s, const struct kube_response *response, const struct err *err)
{
    struct err e = *err;
    s->e->refused = s->e->refused || err->code == ERR_INVALID || err->code == ERR_FORBIDDEN;
    if (response && s->e->refused) {
        e = ERR_INIT;
    } else if (response) {
        e = ERR_INIT;
        observations_dry_run_passed(s->e->observations, s->action, response->body, response->len, &e);
    } else if (err->code == ERR_INVALID) {
        observations_dry_run_refused(s->e->observations, s->action->hash, err->msg);
        e = ERR_INIT;
    } else if (err->code == ERR_FORBIDDEN) {
        s->e->stopped = true;
        observations_dry_run_forbidden(s->e->observations, s->action->hash, s->e->incarnation, refusal_reason(err),
                                       err->msg, clock_wall_ms(s->e->x.clock));
        e = ERR_INIT;
    }
    step_end(s, &e);
}

static void on_dry_run(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct step *s = ctx;
    if (s->e->x.dryruns)
        dryruns_tell(s->e->x.dryruns, s->e->owner, s->action->hash, response, err);
    take_dry_run(s, response, err);
}

static void try_pod(struct step *s)
{
    struct kube_request r = {.verb = VERB_CREATE,
                             .kind = KIND_POD,
                             .ns = s->e->owner->meta.ns,
                             .body = s->action->body,
                             .lends_body = true,
                             .decided = true,
                             .dry_run = true};
    kube_send(s->e->x.client, &r, 0, on_dry_run, s);
}

static void on_tried(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct step *s = ctx;
    if (response || err->code)
        take_dry_run(s, response, err);
    else
        try_pod(s);
}

// Makes the dry run, or waits for an equal one that is in progress.
static void dry_run(struct step *s)
{
    struct dryruns *d = s->e->x.dryruns;
    s->e->in_flight++;
    if (!d || !dryruns_join(d, s->e->owner, s->action->hash, on_tried, s))
        try_pod(s);
}

static enum kind kind_of(const struct step *s);

// An object with this name exists. Either the operator created it before a crash, or it belongs to somebody else.
static void on_holder(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct step *s = ctx;
    enum kind kind = kind_of(s);
    const struct object *o = NULL;
    struct err e = *err;
    bool ours = false;
    if (response && object_decode(kind, response->body, response->len, &o, &e) == 0) {
        ours = str_eq(o->meta.owner.uid, s->e->owner->meta.uid);
        if (ours) {
            store_wrote(s->e->x.stores[kind], o);
        } else if (kind == KIND_ENDPOINTSLICE) { // the slice of a deleted group disappears soon
            err_set(&e, ERR_EXISTS, "an EndpointSlice %s/%s exists that does not belong to this %s: delete it",
                    o->meta.ns, o->meta.name, kind_info(s->e->owner->kind)->kind);
        } else {
            refused(s, REASON_NAME_CONFLICT,
                    arena_printf(&s->e->arena,
                                 "a %s %s exists that does not belong to this %s: delete it, or give the "
                                 "group another name",
                                 kind_info(kind)->kind, s->action->name, kind_info(s->e->owner->kind)->kind));
        }
        object_unref(o);
    }
    if (kind == KIND_POD && !ours) // no pod of this group takes that room, also if the GET failed
        cluster_unassume(s->e->x.cluster, s->e->owner->meta.ns, s->action->name);
    step_end(s, &e);
}

// Takes the answer to a created object or to a changed slice.
static void on_written(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct step *s = ctx;
    enum kind kind = kind_of(s);
    if (err->code == ERR_EXISTS) {
        struct kube_request r = {
            .verb = VERB_GET, .kind = kind, .ns = s->e->owner->meta.ns, .name = s->action->name, .decided = true};
        kube_send(s->e->x.client, &r, 0, on_holder, s);
        return;
    }
    if (response)
        remember(s, kind, response);
    else if (kind == KIND_POD)
        cluster_unassume(s->e->x.cluster, s->e->owner->meta.ns, s->action->name);
    // The owner has to know what the API server refuses. It is not a failure of the operator.
    bool unwanted = kind != KIND_ENDPOINTSLICE && (err->code == ERR_FORBIDDEN || err->code == ERR_INVALID);
    if (unwanted)
        refused(s, refusal_reason(err), err->msg);
    step_end(s, unwanted ? NULL : err);
}

static void on_deleted(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct step *s = ctx;
    if (response && s->action->kind == ACTION_DELETE_POD) // deleting the owner answers with a Status
        remember(s, KIND_POD, response);
    // The object is gone, or it has another UID, or it has changed. The change leads to the next decision.
    step_end(s, err->code == ERR_NOT_FOUND || err->code == ERR_CONFLICT ? NULL : err);
}

static void on_status(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct step *s = ctx;
    if (response)
        remember(s, s->e->owner->kind, response);
    if (err->code == ERR_NOT_FOUND) // the owner was deleted, so later actions make no sense
        s->e->stopped = true;
    step_end(s, err->code == ERR_NOT_FOUND ? NULL : err);
}

// An agent that is not connected connects again, reports what it runs, and wakes the group.
static void command(struct execution *e, const struct action *a)
{
    struct err err = ERR_INIT;
    if (!kube_may_decide(e->x.client)) {
        err_set(&e->err, ERR_CANCELED, "%s", err_text(ERR_CANCELED));
        return;
    }
    if (!e->x.agents ||
        agents_command(e->x.agents, a->uid, e->owner->meta.uid, a->attempt, a->command, a->body, &err) == 0)
        return;
    if (err.code == ERR_UNAVAILABLE || err.code == ERR_GONE)
        log_debug("an agent could not be told", "pod", a->name, "command", record_type_name(a->command), "error",
                  err.msg, NULL);
    else if (!e->err.code)
        e->err = err;
}

static const struct write { // the request for an action
    enum verb verb;
    enum kind kind; // of the object with the action's `name`; unused for the owner
    kube_done_fn done;
    bool of_owner;
} writes[] = {
    [ACTION_CREATE_SERVICE] = {VERB_CREATE, KIND_SERVICE, on_written},
    [ACTION_CREATE_SLICE] = {VERB_CREATE, KIND_ENDPOINTSLICE, on_written},
    [ACTION_PATCH_SLICE] = {VERB_PATCH_MERGE, KIND_ENDPOINTSLICE, on_written},
    [ACTION_CREATE_POD] = {VERB_CREATE, KIND_POD, on_written},
    [ACTION_DELETE_POD] = {VERB_DELETE, KIND_POD, on_deleted},
    [ACTION_DELETE_OWNER] = {VERB_DELETE, .done = on_deleted, .of_owner = true},
    [ACTION_STATUS] = {VERB_PATCH_MERGE, .done = on_status, .of_owner = true},
};

static enum kind kind_of(const struct step *s)
{
    return writes[s->action->kind].kind;
}

static void write_object(struct execution *e, struct step *s, const struct action *a)
{
    const struct write *w = &writes[a->kind];
    const struct meta *owner = &e->owner->meta;
    const struct kube_request r = {
        .verb = w->verb,
        .kind = w->of_owner ? e->owner->kind : w->kind,
        .ns = owner->ns,
        .name = w->of_owner              ? owner->name
                : w->verb == VERB_CREATE ? NULL
                                         : a->name,
        .subresource = a->kind == ACTION_STATUS ? "status" : NULL,
        .body = a->body,
        .lends_body = true, // the plan lives as long as its steps
        .decided = true,
        .uid = a->uid,
        .resource_version = a->resource_version,
        .grace_s = a->grace_s,
    };
    if (a->kind == ACTION_DELETE_OWNER)
        log_info("a finished object is deleted after its time to live", "namespace", owner->ns, "name", owner->name,
                 NULL);
    e->in_flight++;
    kube_send(e->x.client, &r, 0, w->done, s);
}

static void begin(struct execution *e, const struct action *a)
{
    struct step *s = arena_new(&e->arena, struct step);
    *s = (struct step){e, a};
    if (a->kind == ACTION_EVENT)
        recorder_event(e->x.recorder, e->owner, a->warning, a->reason, a->note);
    else if (a->kind == ACTION_COMMAND)
        command(e, a);
    else if (a->kind == ACTION_DRY_RUN)
        dry_run(s);
    else
        write_object(e, s, a);
}

static void advance(struct execution *e)
{
    while (e->in_flight < EXECUTION_IN_FLIGHT_MAX) {
        bool over = e->err.code || e->stopped;
        if (over || e->next == e->stage_end) {
            if (e->in_flight > 0)
                return;
            if (over || e->next == e->plan.n) {
                finish(e);
                return;
            }
            begin_stage(e);
        }
        begin(e, &e->plan.actions[e->next++]);
    }
}

void execution_start(const struct executor *x, const struct object *owner, int32_t incarnation, struct arena *arena,
                     const struct plan *plan, struct observations *observations, execution_fn done, void *ctx)
{
    struct execution *e = xcalloc(1, sizeof *e);
    object_ref(owner);
    *e = (struct execution){
        .x = *x,
        .owner = owner,
        .incarnation = incarnation,
        .arena = *arena,
        .plan = *plan,
        .observations = observations,
        .done = done,
        .ctx = ctx,
    };
    *arena = ARENA_INIT;
    e->plan.arena = &e->arena;
    reserve(e);
    advance(e);
}
