// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/group_controller.h"

#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/exec/bundles_view.h"
#include "operator/exec/orphans.h"
#include "operator/exec/peers.h"
#include "operator/exec/placementgroup_users.h"
#include "operator/reconcile/gang_manifest.h"
#include "operator/reconcile/group_bundles.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/running_spec.h"

#include <stdlib.h>
#include <string.h>

enum {
    PEERS_DEBOUNCE_MS = 5, // a thousand ranks connect one after the other
};

struct group_controller {
    struct controller_shared shared;
    struct store *const *stores;
    struct cluster *cluster;
    struct peers peers;
    struct arena setup_arena; // contains shared.setup
    struct reconciler reconciler;
    struct map changed; // keys of groups whose agents or members have changed; the values are unused
    struct placementgroup_users *users;
    struct orphans *orphans; // stops processes of groups that do not use their PlacementGroup
    struct loop_timer *peers_timer;
    size_t n_agents; // running pods that have an agent
    struct metric *given_back;
};

// The pods of a PlacementGroup also matter to the groups that run on it.
static void wake_owner(void *ctx, const struct object *o)
{
    struct group_controller *c = ctx;
    const struct owner *owner = &o->meta.owner;
    if (str_eq(owner->kind, kind_info(KIND_WORKERGROUP)->kind)) {
        reconciler_wake(&c->reconciler, o->meta.ns, owner->name);
    } else if (str_eq(owner->kind, kind_info(KIND_PLACEMENTGROUP)->kind)) {
        placementgroup_users_each(c->users, o->meta.ns, owner->name, reconciler_wake_key, &c->reconciler);
        waiting_gangs_wake(c->shared.waiting, KIND_PLACEMENTGROUP, o->meta.ns, owner->name);
    }
}

static void note_changed(void *ctx, const char *key)
{
    struct group_controller *c = ctx;
    map_set(&c->changed, key, c);
    if (!loop_timer_armed(c->peers_timer))
        loop_timer_arm(c->peers_timer, PEERS_DEBOUNCE_MS);
}

void group_controller_changed(struct group_controller *c, const char *ns, const char *name)
{
    if (!c->reconciler.started)
        return;
    _cleanup_(free_p) char *key = xasprintf("%s/%s", ns, name);
    note_changed(c, key);
}

void group_controller_placementgroup_changed(struct group_controller *c, const char *ns, const char *placementgroup,
                                             const char *group_uid)
{
    const struct group *g = group_uid && c->peers.router ? router_group(c->peers.router, group_uid) : NULL;
    if (!c->reconciler.started)
        return;
    if (g) {
        group_controller_changed(c, g->ns, g->name);
    } else {
        placementgroup_users_each(c->users, ns, placementgroup, note_changed, c);
        orphans_later(c->orphans, ns, placementgroup);
    }
}

static void on_peers(void *ctx)
{
    struct group_controller *c = ctx;
    const char *key;
    for (size_t i = 0; map_next(&c->changed, &i, &key, NULL);)
        reconciler_wake_key(&c->reconciler, key);
    map_done(&c->changed);
    c->changed = MAP_INIT;
}

static size_t expects_agent(const struct object *o)
{
    const struct pod *p = o ? pod_of(o) : NULL;
    return p && p->phase == POD_RUNNING && !p->obj.meta.deleted_ms && pod_has_agent(p);
}

static void on_pod(void *ctx, const struct object *old, const struct object *now)
{
    struct group_controller *c = ctx;
    if (!now) {
        cluster_del_pod(c->cluster, old->meta.ns, old->meta.name);
        if (c->shared.executor.agents)
            agents_pod_gone(c->shared.executor.agents, old->meta.uid);
    } else {
        cluster_set_pod(c->cluster, pod_of(now));
    }
    c->n_agents += expects_agent(now) - expects_agent(old);
    wake_owner(c, now ? now : old);
    waiting_gangs_look(c->shared.waiting);
}

static void on_node(void *ctx, const struct object *old, const struct object *now)
{
    struct group_controller *c = ctx;
    if (!now)
        cluster_del_node(c->cluster, old->meta.name);
    else
        cluster_set_node(c->cluster, node_of(now));
    decision_time_saw(&c->shared.time, old, now);
    // A node disappeared or came back, which is rare. The groups that have pods there must know.
    if (!now || (old && node_of(old)->ready != node_of(now)->ready))
        store_each_on_node(c->stores[KIND_POD], (now ? now : old)->meta.name, wake_owner, c);
    waiting_gangs_look(c->shared.waiting);
}

static void on_owned(void *ctx, const struct object *old, const struct object *now)
{
    wake_owner(ctx, now ? now : old);
}

static void wake_if_it_waits(void *ctx, const char *key)
{
    struct group_controller *c = ctx;
    const struct reconciler_entry *e = reconciler_find(&c->reconciler, key);
    if (e && e->waits_for_port)
        reconciler_wake_key(&c->reconciler, key);
}

static void leave_placementgroups(struct group_controller *c, const struct workergroup *old)
{
    for (size_t i = 0; i < old->spec.n_placement_groups; i++) {
        const struct meta *m = &old->obj.meta;
        const char *plg = old->spec.placement_groups[i].name;
        if (!placementgroup_users_has(c->users, m->ns, plg, m->uid))
            orphans_now(c->orphans, m->ns, plg);
        placementgroup_users_each(c->users, m->ns, plg, wake_if_it_waits, c);
    }
}

// Wakes a PlacementGroup when its first group comes. The processes of a group on PlacementGroups that it has left end,
// and another group may get its port.
static void on_user(struct group_controller *c, const struct workergroup *old, const struct workergroup *now)
{
    for (size_t i = 0; now && i < now->spec.n_placement_groups; i++)
        if (!placementgroup_users_has(c->users, now->obj.meta.ns, now->spec.placement_groups[i].name, NULL))
            waiting_gangs_wake(c->shared.waiting, KIND_PLACEMENTGROUP, now->obj.meta.ns,
                               now->spec.placement_groups[i].name);
    placementgroup_users_set(c->users, old, now);
    struct arena a = ARENA_INIT;
    const struct workergroup *before = old ? running_spec(old, &a) : NULL;
    if (old)
        leave_placementgroups(c, old);
    if (before)
        leave_placementgroups(c, before);
    arena_done(&a);
}

static void on_group(void *ctx, const struct object *old, const struct object *now)
{
    struct group_controller *c = ctx;
    on_user(c, old ? workergroup_of(old) : NULL, now ? workergroup_of(now) : NULL);
    reconciler_wake_object(&c->reconciler, now ? now : old);
}

static void on_placementgroup(void *ctx, const struct object *old, const struct object *now)
{
    struct group_controller *c = ctx;
    const struct meta *m = &(now ? now : old)->meta;
    placementgroup_users_each(c->users, m->ns, m->name, reconciler_wake_key, &c->reconciler);
}

static const struct endpointslice *const *own_slices(const struct group_controller *c, const struct workergroup *wg,
                                                     struct arena *a, size_t *ret_n)
{
    const struct object *const *owned;
    size_t n = *ret_n = store_by_owner(c->stores[KIND_ENDPOINTSLICE], &wg->obj.meta, a, &owned);
    const struct endpointslice **slices = arena_array(a, n, sizeof *slices);
    for (size_t i = 0; i < n; i++)
        slices[i] = endpointslice_of(owned[i]);
    return slices;
}

static bool any_unread(const struct group_controller *c, const struct workergroup *wg)
{
    for (size_t i = 0; i < wg->spec.n_placement_groups; i++)
        if (store_has_unread(c->stores[KIND_PLACEMENTGROUP], wg->obj.meta.ns, wg->spec.placement_groups[i].name))
            return true;
    return false;
}

// The PlacementGroup where it runs exists, but cannot be read. The processes run on, until it can be read or is
// deleted.
static bool waits_for_reader(const struct group_controller *c, const struct group_view *v, struct arena *a,
                             struct plan *ret)
{
    enum { LOOK_AGAIN_MS = 10 * 1000 };
    const struct workergroup_status *s = &v->wg->status;
    const struct condition *scheduled = condition_find(s->conditions, s->n_conditions, COND_SCHEDULED);
    bool bound = scheduled && scheduled->status == CONDITION_TRUE;
    if (!bound || v->wg->spec.suspend || !any_unread(c, v->as_running ? v->as_running : v->wg))
        return false;
    plan_init(ret, a);
    memcpy(ret->waits, v->gang.memory->waits, sizeof ret->waits);
    ret->master = v->gang.memory->master ? v->gang.memory->master : s->master_addr;
    plan_requeue(ret, LOOK_AGAIN_MS);
    return true;
}

static void decide(void *ctx, const struct object *o, const struct gang_view *gang, struct arena *a, struct plan *ret)
{
    struct group_controller *c = ctx;
    const struct workergroup *wg = workergroup_of(o);
    struct group_view v = {
        .wg = wg, .as_running = running_spec(wg, a), .gang = *gang, .leading_ms = c->shared.time.leading_ms};
    if (waits_for_reader(c, &v, a, ret))
        return;
    v.gang.service = reconciler_service(&c->reconciler, o->meta.ns, o->meta.name);
    if (wg->spec.n_placement_groups)
        bundles_view_fill(&c->reconciler, c->users, c->peers.agents, wg, a, &v);
    else
        v.slices = own_slices(c, wg, a, &v.n_slices);
    if (workergroup_has_agent(wg)) {
        v.agents = peers_agents(&c->peers, wg, v.gang.pods, v.gang.n_pods, a);
        v.members = peers_members(&c->peers, &v, a);
        v.reach = peers_reach(&c->peers, c->n_agents, c->shared.time.listening_ms, a);
    }
    group_reconcile(&v, a, ret);
}

static void note(void *ctx, const struct object *o, struct observations *n, const struct plan *p, int64_t now_ms)
{
    struct group_controller *c = ctx;
    const struct workergroup_status *s = &workergroup_of(o)->status;
    const struct condition *scheduled = condition_find(s->conditions, s->n_conditions, COND_SCHEDULED);
    if (p->gives_back)
        metric_add(c->given_back, 1);
    else if (scheduled && scheduled->status == CONDITION_TRUE && observations_calm(n, p, now_ms))
        observations_bound(n);
}

struct group_controller *group_controller_new(struct loop *loop, const struct group_controller_options *options)
{
    struct group_controller *c = xcalloc(1, sizeof *c);
    c->cluster = cluster_new();
    c->stores = options->stores;
    c->peers = (struct peers){options->agents, options->router, options->reports};
    c->shared = (struct controller_shared){
        .executor = {.client = options->client,
                     .stores = options->stores,
                     .cluster = c->cluster,
                     .recorder = options->recorder,
                     .agents = options->agents,
                     .dryruns = dryruns_new(options->clock),
                     .clock = options->clock},
        .waiting = waiting_gangs_new(loop, c->cluster),
        .time = {.clock = options->clock, .cluster = c->cluster, .agents = options->agents},
        .excluded = options->excluded,
    };
    reconciler_init(&c->reconciler, loop,
                    &(struct reconciler_options){.kind = KIND_WORKERGROUP,
                                                 .shared = &c->shared,
                                                 .metrics = options->metrics,
                                                 .seed = options->seed,
                                                 .plan = decide,
                                                 .note = note,
                                                 .ctx = c});
    c->users = placementgroup_users_new();
    c->orphans = orphans_new(loop, options->client, c->users, options->stores, options->agents);
    c->peers_timer = loop_timer_new(loop, on_peers, c);
    c->given_back = metrics_counter(options->metrics, "cadre_gang_rollbacks_total",
                                    "Gangs given back because they were refused or not bound in time", "");
    store_subscribe(c->stores[KIND_POD], on_pod, c);
    store_subscribe(c->stores[KIND_NODE], on_node, c);
    store_subscribe(c->stores[KIND_SERVICE], on_owned, c);
    store_subscribe(c->stores[KIND_ENDPOINTSLICE], on_owned, c);
    store_subscribe(c->stores[KIND_WORKERGROUP], on_group, c);
    store_subscribe(c->stores[KIND_PLACEMENTGROUP], on_placementgroup, c);
    return c;
}

void group_controller_setup(struct group_controller *c, const struct agent_setup *setup)
{
    struct arena a = ARENA_INIT;
    struct agent_setup *copy = arena_new(&a, struct agent_setup);
    *copy = *setup;
    copy->image = arena_strdup(&a, setup->image);
    copy->pull_policy = arena_strdup(&a, setup->pull_policy);
    copy->url = arena_strdup(&a, setup->url);
    copy->ca_pem = arena_strdup(&a, setup->ca_pem);
    copy->keys_id = arena_strdup(&a, setup->keys_id);
    copy->keys_secret = arena_strdup(&a, setup->keys_secret);
    if (!c->shared.setup || !str_eq(c->shared.setup->keys_id, copy->keys_id))
        // Agents that connected with other keys cannot connect again.
        c->shared.time.listening_ms = decision_time_now(&c->shared.time);
    arena_done(&c->setup_arena);
    c->setup_arena = a;
    c->shared.setup = copy;
    dryruns_forget(c->shared.executor.dryruns);
    reconciler_look(&c->reconciler);
}

struct controller_shared *group_controller_shared(struct group_controller *c)
{
    return &c->shared;
}

bool group_controller_has_user(const struct group_controller *c, const char *ns, const char *placementgroup,
                               const char *group_uid)
{
    return placementgroup_users_has(c->users, ns, placementgroup, group_uid);
}

const struct pod *group_controller_place(const struct group_controller *c, const struct workergroup *wg, int32_t rank,
                                         struct arena *a)
{
    static const struct gang_memory nothing;
    const struct workergroup *before = running_spec(wg, a);
    wg = before ? before : wg;
    struct group_view v = {.wg = wg,
                           .gang.cluster = c->cluster,
                           .gang.memory = &nothing,
                           .gang.now_ms = clock_wall_ms(c->shared.time.clock)};
    bundles_view_fill(&c->reconciler, c->users, c->peers.agents, wg, a, &v);
    return group_bundles_pod(&v, rank, a);
}

void group_controller_start(struct group_controller *c)
{
    orphans_start(c->orphans);
    c->shared.time.leading_ms = decision_time_now(&c->shared.time);
    reconciler_start(&c->reconciler);
}

void group_controller_stop(struct group_controller *c)
{
    c->shared.time.leading_ms = 0;
    reconciler_stop(&c->reconciler);
    orphans_stop(c->orphans);
}

void group_controller_retry(struct group_controller *c, int64_t away_ms)
{
    int64_t now_ms = decision_time_now(&c->shared.time);
    cluster_note_outage(c->cluster, now_ms - away_ms, now_ms);
    controller_retry(c->reconciler.controller);
}

void group_controller_look(struct group_controller *c)
{
    reconciler_look(&c->reconciler);
}

bool group_controller_idle(const struct group_controller *c)
{
    return controller_idle(c->reconciler.controller);
}

void group_controller_free(struct group_controller *c)
{
    if (!c)
        return;
    reconciler_done(&c->reconciler);
    map_done(&c->changed);
    orphans_free(c->orphans);
    dryruns_free(c->shared.executor.dryruns);
    placementgroup_users_free(c->users);
    arena_done(&c->setup_arena);
    waiting_gangs_free(c->shared.waiting);
    loop_timer_free(c->peers_timer);
    cluster_free(c->cluster);
    free(c);
}
