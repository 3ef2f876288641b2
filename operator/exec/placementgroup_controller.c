// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/placementgroup_controller.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/exec/entries.h"
#include "operator/exec/executor.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>
#include <string.h>

struct placementgroup_controller {
    struct executor executor;
    struct controller *controller;
    struct group_controller *groups;
    struct entries entries;
    bool started; // before the start, a standby would collect the keys of all objects that came and went
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

static void wake_owner(void *ctx, const struct object *o)
{
    struct placementgroup_controller *c = ctx;
    if (str_eq(o->meta.owner.kind, kind_info(KIND_PLACEMENTGROUP)->kind))
        wake(c, o->meta.ns, o->meta.owner.name);
}

static void on_pod(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    struct placementgroup_controller *c = ctx;
    (void)event;
    wake_owner(c, now ? now : old);
}

static void on_node(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    struct placementgroup_controller *c = ctx;
    (void)event;
    if (!now || (old && node_of(old)->ready != node_of(now)->ready))
        store_each_on_node(c->executor.pods, (now ? now : old)->meta.name, wake_owner, c);
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
    struct placementgroup_controller *c = ctx;
    (void)event;
    if (!now)
        recorder_forget(c->executor.recorder, old);
    wake_one(c, now ? now : old);
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
        .gang.pods = pods,
        .gang.n_pods = n,
        .gang.setup = group_controller_agent_setup(c->groups),
        .gang.service = service && !service->meta.deleted_ms ? service_of(service) : NULL,
        .used = group_controller_shares(c->groups, m->ns, m->name, NULL),
        .gang.cluster = c->executor.cluster,
        .gang.line = waiting_line(group_controller_waiting(c->groups)),
        .gang.memory = &e->observations.memory,
        .gang.moving = entry_crowd(e),
        .gang.now_ms = group_controller_now(c->groups),
    };
}

static void note_rollback(struct entry *e, const struct placementgroup *plg, const struct plan *p, int64_t now_ms)
{
    const struct gang_memory *m = &e->observations.memory;
    const struct condition *ready = condition_find(plg->status.conditions, plg->status.n_conditions, COND_READY);
    if (ready && ready->status == CONDITION_TRUE && m->rollbacks && m->retry_at_ms <= now_ms)
        observations_ready(&e->observations, ready->changed_ms, now_ms);
    if (p->rolls_back)
        observations_rolled_back(&e->observations, p, now_ms);
}

static void decide(void *ctx, const char *key)
{
    struct placementgroup_controller *c = ctx;
    const char *slash = strchr(key, '/');
    struct arena a = ARENA_INIT;
    const struct object *o = store_get(c->executor.groups, arena_strndup(&a, key, (size_t)(slash - key)), slash + 1);
    if (!o) {
        arena_done(&a);
        entries_forget(&c->entries, key);
        return;
    }
    const struct placementgroup *plg = placementgroup_of(o);
    struct entry *e = entries_get(&c->entries, key, o->meta.uid);
    struct placementgroup_view v;
    struct plan plan;
    observations_time(&e->observations, clock_wall_ms(c->clock), clock_mono_ms(c->clock));
    view_fill(c, plg, e, &a, &v);
    placementgroup_reconcile(&v, &a, &plan);
    if (dryruns_answer(c->executor.dryruns, o, &plan, &e->observations))
        placementgroup_reconcile(&v, &a, &plan);
    note_rollback(e, plg, &plan, v.gang.now_ms);
    entry_planned(e, &plan, v.gang.now_ms, &a);
    execution_start(&c->executor, o, plg->status.incarnation, &a, &plan, &e->observations, entry_executed, e);
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
    c->controller = controller_new(loop, &(struct controller_options){.name = "placementgroup",
                                                                      .reconcile = entries_reconcile,
                                                                      .ctx = &c->entries,
                                                                      .metrics = options->metrics});
    c->entries = (struct entries){.controller = c->controller,
                                  .waiting = group_controller_waiting(c->groups),
                                  .clock = options->clock,
                                  .kind = "PlacementGroup",
                                  .word = "placementgroup",
                                  .territory = options->territory,
                                  .keeps_pod = true,
                                  .decide = decide,
                                  .ctx = c};
    rand_seed(&c->entries.rand, options->seed);
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
    entries_start(&c->entries);
    placementgroup_controller_look(c);
    controller_start(c->controller);
}

void placementgroup_controller_stop(struct placementgroup_controller *c)
{
    c->started = false;
    entries_stop(&c->entries);
    controller_stop(c->controller);
}

void placementgroup_controller_retry(struct placementgroup_controller *c)
{
    controller_retry(c->controller);
}

void placementgroup_controller_look(struct placementgroup_controller *c)
{
    store_each_by_age(c->executor.groups, wake_one, c);
}

bool placementgroup_controller_idle(const struct placementgroup_controller *c)
{
    return controller_idle(c->controller);
}

void placementgroup_controller_free(struct placementgroup_controller *c)
{
    if (!c)
        return;
    entries_done(&c->entries);
    controller_free(c->controller);
    free(c);
}
