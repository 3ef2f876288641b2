// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/placementgroup_controller.h"

#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/base/str.h"
#include "operator/exec/executor.h"
#include "operator/exec/waiting.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/reason.h"
#include "operator/runtime/controller.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 4 }; // as in group_controller.c

struct entry {
    struct placementgroup_controller *c;
    char *key, *uid; // another object of the same name has another UID, and a notebook of its own
    struct notebook notebook;
    int64_t requeue_ms; // of the plan in execution
    bool goes_on;       // that plan asks for the next decision at once
    int rounds;         // decisions since the key was given out
};

struct placementgroup_controller {
    struct executor executor;
    struct controller *controller;
    struct group_controller *groups;
    struct map entries;    // key -> struct entry
    int32_t moving;        // entries whose status waits
    bool started, stopped; // before the start, a standby would collect the keys of all objects that came and went
    struct rand rand;
    const struct clock *clock;
};

static void wake(void *ctx, const char *ns, const char *name)
{
    struct placementgroup_controller *c = ctx;
    if (!c->started)
        return;
    _cleanup_(free_p) char *key = xasprintf("%s/%s", ns, name);
    controller_add(c->controller, key);
}

static void wake_owner(struct placementgroup_controller *c, const struct object *o)
{
    if (str_eq(o->meta.owner.kind, kind_info(KIND_PLACEMENTGROUP)->kind))
        wake(c, o->meta.ns, o->meta.owner.name);
}

static void on_pod(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    struct placementgroup_controller *c = ctx;
    (void)event;
    wake_owner(c, now ? now : old);
}

static void wake_owners_on(struct placementgroup_controller *c, const char *node)
{
    struct arena a = ARENA_INIT;
    const struct object *const *pods;
    size_t n = store_by_node(c->executor.pods, node, &a, &pods);
    for (size_t i = 0; i < n; i++)
        wake_owner(c, pods[i]);
    arena_done(&a);
}

static void on_node(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    struct placementgroup_controller *c = ctx;
    (void)event;
    if (!now || (old && node_of(old)->ready != node_of(now)->ready))
        wake_owners_on(c, (now ? now : old)->meta.name);
}

static void on_service(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    (void)event;
    wake_owner(ctx, now ? now : old);
}

static void wake_one(void *ctx, const struct object *o)
{
    wake(ctx, o->meta.ns, o->meta.name);
}

static void on_placementgroup(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    (void)event;
    wake_one(ctx, now ? now : old);
}

static void set_status_wanted(struct entry *e, int64_t ms)
{
    int64_t *wanted = &e->notebook.memory.status_wanted_ms;
    e->c->moving += (ms != 0) - (*wanted != 0);
    *wanted = ms;
}

static void entry_forget(struct entry *e)
{
    if (e->uid)
        waiting_decided(group_controller_waiting(e->c->groups), e->uid, NULL, 0);
    set_status_wanted(e, 0);
    notebook_done(&e->notebook);
    free(TAKE_PTR(e->uid));
}

static void entry_free(struct entry *e)
{
    entry_forget(e);
    free(e->key);
    free(e);
}

static struct entry *entry_of(struct placementgroup_controller *c, const char *key, const char *uid)
{
    struct entry *e = map_get(&c->entries, key);
    if (!e) {
        e = xcalloc(1, sizeof *e);
        e->c = c;
        e->key = xstrdup(key);
        map_set(&c->entries, key, e);
    }
    if (!e->uid || !str_eq(e->uid, uid)) {
        entry_forget(e);
        e->uid = xstrdup(uid);
        notebook_init(&e->notebook, rand_u64(&c->rand));
        e->notebook.keeps_pod = true;
    }
    return e;
}

static void decide(struct placementgroup_controller *c, const char *key);

static void on_executed(void *ctx, const struct err *err)
{
    struct entry *e = ctx;
    bool stale = err->code == ERR_CONFLICT;
    if (err->code && err->code != ERR_CANCELED && !stale)
        log_warn("a write for a PlacementGroup failed and is tried again", "placementgroup", e->key, "error", err->msg,
                 NULL);
    if (!err->code && e->goes_on && ++e->rounds < ROUNDS_MAX && !e->c->stopped)
        decide(e->c, e->key);
    else
        controller_finish(e->c->controller, e->key,
                          stale ? (struct reconcile_result){0, EXECUTION_STALE_MS}
                                : (struct reconcile_result){err->code, e->requeue_ms});
}

static void view_fill(struct placementgroup_controller *c, const struct placementgroup *plg, const struct entry *e,
                      struct arena *a, struct placementgroup_view *v)
{
    const struct meta *m = &plg->obj.meta;
    const struct object *const *owned;
    size_t n = store_by_owner(c->executor.pods, m->uid, a, &owned);
    const struct pod **pods = arena_array(a, n, sizeof *pods);
    for (size_t i = 0; i < n; i++)
        pods[i] = pod_of(owned[i]);
    const struct object *service = store_get(c->executor.services, m->ns, bundlepod_gang(plg, a));
    *v = (struct placementgroup_view){
        .plg = plg,
        .pods = pods,
        .n_pods = n,
        .setup = group_controller_agent_setup(c->groups),
        .service = service && !service->meta.deleted_ms ? service_of(service) : NULL,
        .tenants = group_controller_shares(c->groups, m->ns, m->name, NULL),
        .cluster = c->executor.cluster,
        .line = waiting_line(group_controller_waiting(c->groups)),
        .memory = &e->notebook.memory,
        .moving = c->moving,
        .now_ms = group_controller_now(c->groups),
    };
}

// What the plan itself says about the time to come.
static void take_notes(struct entry *e, const struct placementgroup *plg, const struct plan *p, int64_t now_ms)
{
    struct group_memory *m = &e->notebook.memory;
    const struct condition *ready = condition_find(plg->status.conditions, plg->status.n_conditions, COND_READY);
    if (ready && ready->status == CONDITION_TRUE && m->rollbacks && m->retry_at_ms <= now_ms)
        notebook_ready(&e->notebook, ready->changed_ms, now_ms);
    if (p->rolls_back)
        notebook_rolled_back(&e->notebook, p, now_ms);
    if (!p->defers_status)
        set_status_wanted(e, 0);
    else if (!m->status_wanted_ms)
        set_status_wanted(e, now_ms);
    waiting_decided(group_controller_waiting(e->c->groups), e->uid, p, clock_wall_ms(e->c->clock));
    notebook_planned(&e->notebook, p);
    e->requeue_ms = p->requeue_ms;
    e->goes_on = p->requeue_ms == 0 && p->n;
}

static void log_plan(const struct entry *e, const struct plan *p, struct arena *a)
{
    if (p->n && log_enabled(LOG_DEBUG))
        log_debug("plan", "placementgroup", e->key, "plan", plan_describe(p, a), NULL);
    for (size_t i = 0; i < p->n; i++)
        if (p->actions[i].kind == ACTION_EVENT)
            log_info("group event", "placementgroup", e->key, "reason", p->actions[i].reason, "note",
                     p->actions[i].note, NULL);
}

static void forget(struct placementgroup_controller *c, const char *key)
{
    struct entry *gone = map_del(&c->entries, key);
    controller_finish(c->controller, key, (struct reconcile_result){0, -1});
    if (gone) // it may own the key
        entry_free(gone);
}

static void decide(struct placementgroup_controller *c, const char *key)
{
    const char *slash = strchr(key, '/');
    struct arena a = ARENA_INIT;
    const struct object *o = store_get(c->executor.groups, arena_strndup(&a, key, (size_t)(slash - key)), slash + 1);
    if (!o) {
        arena_done(&a);
        forget(c, key);
        return;
    }
    const struct placementgroup *plg = placementgroup_of(o);
    struct entry *e = entry_of(c, key, o->meta.uid);
    struct placementgroup_view v;
    struct plan plan;
    notebook_time(&e->notebook, clock_wall_ms(c->clock), clock_mono_ms(c->clock));
    view_fill(c, plg, e, &a, &v);
    placementgroup_reconcile(&v, &a, &plan);
    if (dryruns_answer(c->executor.dryruns, o, &plan, &e->notebook))
        placementgroup_reconcile(&v, &a, &plan);
    take_notes(e, plg, &plan, v.now_ms);
    log_plan(e, &plan, &a);
    execution_start(&c->executor, o, plg->status.incarnation, &a, &plan, &e->notebook, on_executed, e);
}

static void reconcile(void *ctx, const char *key)
{
    struct placementgroup_controller *c = ctx;
    struct entry *e = map_get(&c->entries, key);
    if (e)
        e->rounds = 0;
    decide(c, key);
}

struct placementgroup_controller *placementgroup_controller_new(struct loop *loop,
                                                                const struct placementgroup_controller_options *options)
{
    struct placementgroup_controller *c = xcalloc(1, sizeof *c);
    c->groups = options->groups;
    c->clock = options->clock;
    c->executor = (struct executor){
        .client = options->client,
        .pods = options->pods,
        .services = options->services,
        .groups = options->placementgroups,
        .cluster = group_controller_cluster(options->groups),
        .recorder = options->recorder,
        .dryruns = group_controller_dryruns(options->groups),
        .clock = options->clock,
    };
    rand_seed(&c->rand, options->seed);
    c->controller = controller_new(
        loop, &(struct controller_options){
                  .name = "placementgroup", .reconcile = reconcile, .ctx = c, .metrics = options->metrics});
    waiting_wake_by(group_controller_waiting(c->groups), KIND_PLACEMENTGROUP, wake, c);
    store_subscribe(options->pods, on_pod, c);
    store_subscribe(options->nodes, on_node, c);
    store_subscribe(options->services, on_service, c);
    store_subscribe(options->placementgroups, on_placementgroup, c);
    return c;
}

void placementgroup_controller_start(struct placementgroup_controller *c)
{
    c->started = true;
    store_each_by_age(c->executor.groups, wake_one, c);
    controller_start(c->controller);
}

void placementgroup_controller_stop(struct placementgroup_controller *c)
{
    c->stopped = true;
    controller_stop(c->controller);
}

bool placementgroup_controller_idle(const struct placementgroup_controller *c)
{
    return controller_idle(c->controller);
}

void placementgroup_controller_free(struct placementgroup_controller *c)
{
    if (!c)
        return;
    void *value;
    for (size_t i = 0; map_next(&c->entries, &i, NULL, &value);)
        entry_free(value);
    map_done(&c->entries);
    controller_free(c->controller);
    free(c);
}
