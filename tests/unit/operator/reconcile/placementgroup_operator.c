// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/placementgroup_operator.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/service.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/placementgroup_reconcile.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>
#include <string.h>

static const enum kind mirrored[] = {KIND_NODE, KIND_POD, KIND_SERVICE, KIND_PLACEMENTGROUP};

static int64_t wall_ms(struct plg_operator *o)
{
    clock_fake_init(&o->clock, o->w->now_ms, o->w->now_ms + o->skew_ms);
    return o->clock.wall;
}

// The leader's stores wake it and keep its accounting.
static void on_change(void *ctx, const struct object *old, const struct object *now)
{
    struct plg_operator *o = ctx;
    const struct object *any = now ? now : old;
    if (any->kind != KIND_NODE)
        o->dirty = true;
    sim_mirror_account(o->cluster, old, now);
    if (any->kind != KIND_NODE)
        return;
    wall_ms(o);
    decision_time_saw(&o->time, old, now);
    if (!now || (old && node_of(old)->ready != node_of(now)->ready))
        o->dirty = true; // as if all nodes had pods of ours
}

// A process begins to lead with the mirror that it has.
static void lead(struct plg_operator *o)
{
    cluster_free(o->cluster);
    o->cluster = cluster_new();
    observations_done(&o->observations);
    observations_init(&o->observations, rand_u64(&o->w->rand));
    o->observations.keeps_pod = true;
    o->waits_for_room = false;
    o->failures = 0;
    o->due_ms = -1;
    o->skew_ms = o->w->calm ? 0 : rand_range(&o->w->rand, -3000, 3000);
    wall_ms(o);
    o->time = (struct decision_time){.clock = &o->clock.clock, .cluster = o->cluster};
    o->dirty = true; // every object is looked at first
    sim_mirror_subscribe(&o->leader, on_change, o);
}

void plg_operator_die(struct plg_operator *o)
{
    o->deaths++;
    sim_mirror_done(&o->leader);
    if (o->crash_at || sim_chance(o->w, 50)) { // the standby takes over, with what it has seen
        if (o->crash_at)
            sim_mirror_follow_all(&o->standby, &o->w->log, o->w->log.n - MIN(o->lag, o->w->log.n));
        o->leader = o->standby;
        sim_mirror_init(&o->standby, mirrored, ARRAY_LEN(mirrored));
    } else { // a new process lists everything
        sim_mirror_init(&o->leader, mirrored, ARRAY_LEN(mirrored));
        sim_mirror_follow_all(&o->leader, &o->w->log, o->w->log.n);
    }
    lead(o);
}

void plg_operator_init(struct plg_operator *o, struct sim_world *w)
{
    *o = (struct plg_operator){.w = w};
    sim_mirror_init(&o->leader, mirrored, ARRAY_LEN(mirrored));
    sim_mirror_init(&o->standby, mirrored, ARRAY_LEN(mirrored));
    sim_mirror_follow_all(&o->leader, &w->log, w->log.n);
    lead(o);
}

void plg_operator_done(struct plg_operator *o)
{
    sim_mirror_done(&o->leader);
    sim_mirror_done(&o->standby);
    cluster_free(o->cluster);
    observations_done(&o->observations);
}

void plg_operator_watch(struct plg_operator *o)
{
    if (o->w->calm) {
        sim_mirror_follow_all(&o->leader, &o->w->log, o->w->log.n);
        return;
    }
    sim_mirror_follow_some(&o->leader, &o->w->log, &o->w->rand, 75);
    sim_mirror_follow_some(&o->standby, &o->w->log, &o->w->rand, 20);
    if (sim_chance(o->w, 3))
        o->skew_ms = rand_range(&o->w->rand, -3600 * 1000, 3600 * 1000);
}

bool plg_operator_awake(const struct plg_operator *o)
{
    return o->dirty || (o->due_ms >= 0 && o->due_ms <= o->w->now_ms) ||
           (o->waits_for_room && o->epoch != cluster_epoch(o->cluster));
}

// The executor.

enum fate { FATE_WORKS, FATE_FAILS, FATE_ANSWER_LOST, FATE_LATE, FATE_DIES_BEFORE, FATE_DIES_AFTER };
enum { DIED = 1, REFUSED = 2 };

static enum fate fate(struct plg_operator *o)
{
    if (++o->writes == o->crash_at)
        return o->crash_after ? FATE_DIES_AFTER : FATE_DIES_BEFORE;
    if (o->w->calm || !sim_chance(o->w, 15))
        return FATE_WORKS;
    return (enum fate)(1 + rand_below(&o->w->rand, 5));
}

static void remember(struct plg_operator *o, const struct object *object)
{
    store_wrote(o->leader.stores[object->kind], object);
}

static int refused(struct plg_operator *o, const struct placementgroup *plg, const struct err *err)
{
    observations_refused(&o->observations, plg->status.incarnation, REASON_QUOTA_EXCEEDED, err->msg, wall_ms(o));
    return REFUSED;
}

static int dry_run(struct plg_operator *o, const struct placementgroup *plg, const struct action *a)
{
    struct err err = ERR_INIT;
    if (sim_create_pod(o->w, a->body, true, &err) < 0) {
        observations_dry_run_forbidden(&o->observations, a->hash, plg->status.incarnation, REASON_QUOTA_EXCEEDED,
                                       err.msg, wall_ms(o));
        return REFUSED;
    }
    return observations_dry_run_passed(&o->observations, a, a->body, strlen(a->body), &err);
}

static int create_pod(struct plg_operator *o, const struct placementgroup *plg, const struct action *a, enum fate f)
{
    struct err err = ERR_INIT;
    int r = f == FATE_LATE    ? sim_create_pod_late(o->w, a->body)
            : f == FATE_FAILS ? ERR_TIMEOUT
                              : sim_create_pod(o->w, a->body, false, &err);
    if (r == 0 && f == FATE_ANSWER_LOST)
        r = ERR_IO;
    if (r == 0 || r == ERR_EXISTS) {
        remember(o, &sim_pod(o->w, a->name)->now->obj);
        return 0;
    }
    cluster_unassume(o->cluster, "ml", a->name);
    return r == ERR_FORBIDDEN ? refused(o, plg, &err) : r;
}

static int write(struct plg_operator *o, const struct placementgroup *plg, const struct action *a, enum fate f)
{
    int r = 0;
    if (a->kind == ACTION_CREATE_POD)
        return create_pod(o, plg, a, f);
    if (f == FATE_FAILS || f == FATE_LATE)
        return ERR_IO;
    if (a->kind == ACTION_CREATE_SERVICE) {
        r = sim_create_service(o->w, a->body);
        if (r == 0 && f == FATE_WORKS)
            remember(o, o->w->service);
        r = r == ERR_EXISTS ? 0 : r;
    } else if (a->kind == ACTION_DELETE_POD) {
        r = sim_delete_pod(o->w, a->name, a->uid, a->grace_s);
        const struct sim_pod *p = sim_pod(o->w, a->name);
        if (r == 0 && p && f == FATE_WORKS)
            remember(o, &p->now->obj);
        r = r == ERR_NOT_FOUND || r == ERR_CONFLICT ? 0 : r;
    } else if (a->kind == ACTION_STATUS) {
        r = sim_patch_status(o->w, a->body);
        if (r == 0 && f == FATE_WORKS)
            remember(o, o->w->gang);
    }
    return r == 0 && f == FATE_ANSWER_LOST ? ERR_IO : r;
}

static int act(struct plg_operator *o, const struct placementgroup *plg, const struct action *a)
{
    if (a->kind == ACTION_EVENT)
        return 0;
    if (a->kind == ACTION_DRY_RUN)
        return dry_run(o, plg, a);
    enum fate f = fate(o);
    if (f == FATE_DIES_BEFORE)
        return DIED;
    int r = write(o, plg, a, f);
    return f == FATE_DIES_AFTER ? DIED : r;
}

// Pods of a stage take their room from its beginning.
static void assume_stage(struct plg_operator *o, const struct plan *p, size_t from)
{
    for (size_t i = from; i < p->n && p->actions[i].stage == p->actions[from].stage; i++) {
        const struct action *a = &p->actions[i];
        if (a->kind == ACTION_CREATE_POD)
            cluster_assume(o->cluster, "ml", a->name, a->node, a->requests);
    }
}

// 0, REFUSED, DIED, or an error.
static int carry_out(struct plg_operator *o, const struct placementgroup *plg, const struct plan *p)
{
    int result = 0;
    for (size_t i = 0; i < p->n; i++) {
        if (i && p->actions[i].stage != p->actions[i - 1].stage) {
            if (result)
                return result;
            sim_pass(o->w, 1); // the world goes on meanwhile, and pods of the plan may go from the stores
            plg_operator_watch(o);
        }
        if (!i || p->actions[i].stage != p->actions[i - 1].stage)
            assume_stage(o, p, i);
        int r = act(o, plg, &p->actions[i]);
        if (r == DIED)
            return DIED;
        result = result ? result : r;
    }
    return result;
}

// As operator/exec does before it begins with a plan.
static void take_notes(struct plg_operator *o, const struct placementgroup *plg, const struct plan *p, int64_t now_ms)
{
    struct gang_memory *m = &o->observations.memory;
    const struct condition *ready = condition_find(plg->status.conditions, plg->status.n_conditions, COND_READY);
    bool trouble = m->rollbacks || m->n_contended;
    if (ready && ready->status == CONDITION_TRUE && trouble && m->retry_at_ms <= now_ms)
        observations_ready(&o->observations, ready->changed_ms, now_ms);
    if (p->rolls_back)
        observations_rolled_back(&o->observations, p, now_ms);
    else if (p->n_contended)
        observations_shun(&o->observations, p);
    if (!p->defers_status)
        m->status_wanted_ms = 0;
    else if (!m->status_wanted_ms)
        m->status_wanted_ms = now_ms;
    observations_planned(&o->observations, p);
    o->waits_for_room = p->waits_for_room;
    o->last_actions = p->n;
    o->last_plan = plan_describe(p, &o->w->arena);
}

static void look(struct plg_operator *o, const struct object *plg, struct arena *a, struct placementgroup_view *v)
{
    static const struct agent_setup setup = {.image = "cadre", .url = "wss://cadre-operator:9443", .ca_pem = "CA"};
    const struct object *const *owned;
    size_t n = store_by_owner(o->leader.stores[KIND_POD], &plg->meta, a, &owned);
    const struct pod **pods = arena_array(a, n, sizeof *pods);
    bool *gpu_lost = arena_array(a, n, sizeof *gpu_lost);
    for (size_t i = 0; i < n; i++) {
        pods[i] = pod_of(owned[i]);
        gpu_lost[i] = str_hash(owned[i]->meta.uid, strlen(owned[i]->meta.uid)) % 4 == 0; // counts once the pod is dead
    }
    const struct object *service =
        store_get(o->leader.stores[KIND_SERVICE], "ml", bundlepod_gang(placementgroup_of(plg), a));
    *v = (struct placementgroup_view){
        .plg = placementgroup_of(plg),
        .gang.pods = pods,
        .gang.n_pods = n,
        .gang.setup = &setup,
        .gang.service = service ? service_of(service) : NULL,
        .gpu_lost = gpu_lost,
        .used = o->w->used,
        .gang.cluster = o->cluster,
        .gang.memory = &o->observations.memory,
        .gang.now_ms = decision_time_now(&o->time),
    };
}

static void wait_for(struct plg_operator *o, const struct plan *p, int result)
{
    if (result < 0)
        o->due_ms = o->w->now_ms + MIN((int64_t)5 << MIN(o->failures++, 10), 5000);
    else if (p->requeue_ms >= 0)
        o->due_ms = o->w->now_ms + p->requeue_ms;
    if (result >= 0)
        o->failures = 0;
}

void plg_operator_turn(struct plg_operator *o)
{
    const struct object *plg = store_get(o->leader.stores[KIND_PLACEMENTGROUP], "ml", "sim");
    o->dirty = false;
    o->due_ms = -1;
    o->epoch = cluster_epoch(o->cluster);
    if (!plg) // the standby has not even seen it
        return;
    struct arena a = ARENA_INIT;
    struct placementgroup_view v;
    struct plan plan;
    object_ref(plg);
    observations_time(&o->observations, wall_ms(o), o->w->now_ms);
    look(o, plg, &a, &v);
    placementgroup_reconcile(&v, &a, &plan);
    take_notes(o, v.plg, &plan, v.gang.now_ms);
    int result = carry_out(o, v.plg, &plan);
    wait_for(o, &plan, result);
    object_unref(plg);
    arena_done(&a);
    if (result == DIED)
        plg_operator_die(o);
}
