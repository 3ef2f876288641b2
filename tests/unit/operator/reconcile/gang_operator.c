// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/gang_operator.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const enum kind mirrored[] = {KIND_NODE,          KIND_POD,         KIND_SERVICE,
                                     KIND_ENDPOINTSLICE, KIND_WORKERGROUP, KIND_PLACEMENTGROUP};

static int64_t wall_ms(const struct sim_operator *o)
{
    return o->w->now_ms + o->skew_ms;
}

static void set_clocks(struct sim_operator *o)
{
    for (int i = 0; i < SIM_LINES; i++)
        clock_fake_init(&o->processes[i].registry->clock, o->w->now_ms, wall_ms(o));
}

// In the end no written time may lie in the future, because a later process would have to believe it.
static void set_clock(struct sim_operator *o, int64_t up_to_ms)
{
    o->skew_ms = o->w->calm ? o->max_skew_ms : rand_range(&o->w->rand, -up_to_ms, up_to_ms);
    o->max_skew_ms = MAX(o->max_skew_ms, o->skew_ms);
    set_clocks(o);
}

// Changes in the leader's stores wake the leader and keep its accounting up to date.
static void on_change(void *ctx, const struct object *old, const struct object *now)
{
    struct sim_operator *o = ctx;
    const struct object *any = now ? now : old;
    if (any->kind != KIND_NODE)
        o->dirty = true;
    sim_mirror_account(o->cluster, old, now);
    if (any->kind == KIND_POD && !now)
        agents_pod_gone(o->processes[0].registry->agents, any->meta.uid);
    if (any->kind != KIND_NODE)
        return;
    decision_time_saw(&o->time, old, now);
    if (!now || (old && node_of(old)->ready != node_of(now)->ready))
        o->dirty = true; // as if our pods ran on all nodes
}

// News to the standby wakes nobody.
static void on_peers(void *ctx, const char *ns, const char *group)
{
    struct sim_registry *r = ctx;
    assert_string_equal(ns, "ml");
    assert_string_equal(group, "sim");
    if (r->o->processes[0].registry == r)
        r->o->dirty = true;
}

static void process_init(struct sim_process *p, struct sim_operator *o)
{
    struct sim_registry *r = xcalloc(1, sizeof *r);
    p->registry = r;
    sim_mirror_init(&p->mirror, mirrored, ARRAY_LEN(mirrored));
    clock_fake_init(&r->clock, o->w->now_ms, wall_ms(o));
    r->o = o;
    r->agents = agents_new(&(struct agents_config){.clock = &r->clock.clock, .changed = on_peers, .ctx = r});
}

static void process_done(struct sim_process *p)
{
    agents_free(p->registry->agents); // their lines are cut before
    free(p->registry);
    sim_mirror_done(&p->mirror);
}

static void follow(struct sim_process *p, struct sim_world *w, int percent)
{
    if (w->calm)
        sim_mirror_follow_all(&p->mirror, &w->log, w->log.n);
    else
        sim_mirror_follow_some(&p->mirror, &w->log, &w->rand, percent);
}

void sim_operator_forget(struct sim_operator *o)
{
    observations_done(&o->observations);
    observations_init(&o->observations, rand_u64(&o->w->rand));
    o->observations.keeps_pod = o->owner->keeps_pod;
}

// A process begins to lead, with its present mirror.
static void lead(struct sim_operator *o)
{
    cluster_free(o->cluster);
    o->cluster = cluster_new();
    sim_operator_forget(o);
    o->waits_for_room = false;
    set_clock(o, 3000);
    struct sim_registry *registry = o->processes[0].registry;
    o->time =
        (struct decision_time){.clock = &registry->clock.clock, .cluster = o->cluster, .agents = registry->agents};
    o->time.leading_ms = decision_time_now(&o->time);
    if (o->keys)
        o->time.listening_ms = decision_time_now(&o->time);
    o->others_since_ms = o->has_others && !o->w->deaf[0] ? o->w->now_ms : 0;
    for (int i = 0; i < SIM_LINES; i++)
        o->w->registries[i] = o->processes[i].registry->agents;
    o->failures = 0;
    o->due_ms = -1;
    o->dirty = true; // a new leader looks at every object first
    sim_mirror_subscribe(&o->processes[0].mirror, on_change, o);
}

void sim_operator_die(struct sim_operator *o)
{
    o->deaths++;
    sim_cut_all(o->w, 0);
    process_done(&o->processes[0]);
    if (o->crash_at || sim_chance(o->w, 50)) { // the standby takes over, knowing what it has seen
        if (o->crash_at)
            sim_mirror_follow_all(&o->processes[1].mirror, &o->w->log, o->w->log.n - MIN(o->lag, o->w->log.n));
        sim_promote(o->w);
        o->processes[0] = o->processes[1];
        process_init(&o->processes[1], o);
    } else { // a new process lists everything
        process_init(&o->processes[0], o);
        sim_mirror_follow_all(&o->processes[0].mirror, &o->w->log, o->w->log.n);
    }
    lead(o);
}

void sim_operator_init(struct sim_operator *o, struct sim_world *w)
{
    *o = (struct sim_operator){
        .w = w,
        .owner = w->kind == KIND_WORKERGROUP ? &sim_group : &sim_placementgroup,
        .keys = "ca1-install1",
        .has_others = true,
    };
    process_init(&o->processes[0], o);
    process_init(&o->processes[1], o);
    sim_mirror_follow_all(&o->processes[0].mirror, &w->log, w->log.n);
    lead(o);
}

void sim_operator_done(struct sim_operator *o)
{
    for (int i = 0; i < SIM_LINES; i++) {
        sim_cut_all(o->w, i);
        o->w->registries[i] = NULL;
    }
    process_done(&o->processes[0]);
    process_done(&o->processes[1]);
    cluster_free(o->cluster);
    observations_done(&o->observations);
}

void sim_operator_keys(struct sim_operator *o, const char *keys)
{
    o->keys = keys;
    o->time.listening_ms = 0;
    if (keys)
        o->time.listening_ms = decision_time_now(&o->time);
    o->dirty = true;
}

void sim_operator_watch(struct sim_operator *o)
{
    if (o->w->calm || sim_chance(o->w, 3))
        set_clock(o, 3600 * 1000);
    set_clocks(o);
    o->dirty = o->dirty || o->w->peers_changed;
    o->w->peers_changed = false;
    follow(&o->processes[0], o->w, 75);
    if (!o->crash_at) // otherwise the standby sees its part when the leader dies
        follow(&o->processes[1], o->w, 20);
}

bool sim_operator_awake(const struct sim_operator *o)
{
    return o->dirty || (o->due_ms >= 0 && o->due_ms <= o->w->now_ms) ||
           (o->waits_for_room && o->epoch != cluster_epoch(o->cluster));
}

// The executor.

enum fate { FATE_WORKS, FATE_FAILS, FATE_ANSWER_LOST, FATE_LATE, FATE_DIES_BEFORE, FATE_DIES_AFTER };
enum { DIED = 1, REFUSED = 2 };

static enum fate fate(struct sim_operator *o)
{
    if (o->crash_at && o->requests == o->crash_at)
        return o->crash_after ? FATE_DIES_AFTER : FATE_DIES_BEFORE;
    if (o->w->calm || !sim_chance(o->w, 15))
        return FATE_WORKS;
    return (enum fate)(1 + rand_below(&o->w->rand, 5));
}

static void remember(struct sim_operator *o, const struct object *object)
{
    if (object)
        store_wrote(o->processes[0].mirror.stores[object->kind], object);
}

static int32_t incarnation_of(const struct object *o)
{
    return o->kind == KIND_WORKERGROUP ? workergroup_of(o)->status.incarnation
                                       : placementgroup_of(o)->status.incarnation;
}

static const char *refusal_reason(const struct err *err)
{
    return strstr(err->msg, "exceeded quota") ? REASON_QUOTA_EXCEEDED : REASON_FORBIDDEN;
}

static int dry_run(struct sim_operator *o, const struct object *owner, const struct action *a)
{
    struct err err = ERR_INIT;
    int r = sim_create_pod(o->w, a->body, true, &err);
    if (r == 0)
        return observations_dry_run_passed(&o->observations, a, a->body, strlen(a->body), &err);
    if (r == ERR_FORBIDDEN) {
        observations_dry_run_forbidden(&o->observations, a->hash, incarnation_of(owner), refusal_reason(&err), err.msg,
                                       wall_ms(o));
        return REFUSED;
    }
    observations_dry_run_refused(&o->observations, a->hash, err.msg);
    return 0;
}

static int create_pod(struct sim_operator *o, const struct object *owner, const struct action *a, enum fate f)
{
    struct err err = ERR_INIT;
    int r = f == FATE_LATE    ? sim_create_pod_late(o->w, a->body)
            : f == FATE_FAILS ? ERR_IO
                              : sim_create_pod(o->w, a->body, false, &err);
    if (r == 0 && f == FATE_ANSWER_LOST)
        r = ERR_IO;
    if (r == 0 || r == ERR_EXISTS) {
        remember(o, &sim_pod(o->w, a->name)->now->obj);
        return 0;
    }
    cluster_unassume(o->cluster, "ml", a->name);
    if (r != ERR_FORBIDDEN && r != ERR_INVALID)
        return r;
    observations_refused(&o->observations, incarnation_of(owner), refusal_reason(&err), err.msg, wall_ms(o));
    return REFUSED;
}

static int delete_pod(struct sim_operator *o, const struct action *a, bool answered)
{
    int r = sim_delete_pod(o->w, a->name, a->uid, a->grace_s);
    const struct sim_pod *p = sim_pod(o->w, a->name);
    if (r == 0 && p && answered)
        remember(o, &p->now->obj);
    return r == ERR_NOT_FOUND || r == ERR_CONFLICT ? 0 : r;
}

static int write(struct sim_operator *o, const struct object *owner, const struct action *a, enum fate f)
{
    bool answered = f == FATE_WORKS;
    int r = 0;
    switch (a->kind) {
    case ACTION_DRY_RUN:
        return f == FATE_ANSWER_LOST ? ERR_IO : dry_run(o, owner, a);
    case ACTION_CREATE_SERVICE:
        r = sim_create_service(o->w, a->body);
        if (answered)
            remember(o, o->w->service);
        r = r == ERR_EXISTS ? 0 : r;
        break;
    case ACTION_CREATE_SLICE:
    case ACTION_PATCH_SLICE:
        r = a->kind == ACTION_CREATE_SLICE ? sim_create_slice(o->w, a->body) : sim_patch_slice(o->w, a->body);
        if (answered || r == ERR_EXISTS)
            remember(o, o->w->slice);
        r = r == ERR_EXISTS ? 0 : r;
        break;
    case ACTION_DELETE_POD:
        r = delete_pod(o, a, answered);
        break;
    case ACTION_STATUS:
        o->writes++;
        r = sim_patch_status(o->w, a->body);
        if (r == 0 && answered)
            remember(o, o->w->gang);
        break;
    case ACTION_CREATE_POD:
    case ACTION_DELETE_OWNER: // no object here has a time to live
    case ACTION_COMMAND:
    case ACTION_EVENT:
        break;
    }
    return r == 0 && f == FATE_ANSWER_LOST ? ERR_IO : r;
}

static int request(struct sim_operator *o, const struct object *owner, const struct action *a, enum fate f)
{
    if (a->kind == ACTION_CREATE_POD)
        return create_pod(o, owner, a, f);
    return f == FATE_FAILS || f == FATE_LATE ? ERR_IO : write(o, owner, a, f);
}

// An agent that is not connected will come again.
static void command(struct sim_operator *o, const struct object *owner, const struct action *a)
{
    struct err ignored = ERR_INIT;
    agents_command(o->processes[0].registry->agents, a->uid, owner->meta.uid, a->attempt, a->command, a->body,
                   &ignored);
}

// Returns 0, REFUSED, DIED, or an error.
static int act(struct sim_operator *o, const struct object *owner, const struct action *a)
{
    int r = 0;
    o->events += a->kind == ACTION_EVENT;
    if (a->kind == ACTION_EVENT)
        return 0;
    o->requests += a->kind != ACTION_COMMAND;
    enum fate f = fate(o);
    if (f == FATE_DIES_BEFORE)
        return DIED;
    if (a->kind == ACTION_COMMAND)
        command(o, owner, a);
    else
        r = request(o, owner, a, f);
    return f == FATE_DIES_AFTER ? DIED : r;
}

// Pods of all stages take their room from the beginning.
static void reserve(struct sim_operator *o, const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->actions[i].kind == ACTION_CREATE_POD)
            cluster_assume(o->cluster, "ml", p->actions[i].name, p->actions[i].node, p->actions[i].requests);
}

// The pods of the remaining actions are not created.
static void release(struct sim_operator *o, const struct plan *p, size_t from)
{
    for (size_t i = from; i < p->n; i++)
        if (p->actions[i].kind == ACTION_CREATE_POD)
            cluster_unassume(o->cluster, "ml", p->actions[i].name);
}

static int carry_out(struct sim_operator *o, const struct object *owner, const struct plan *p)
{
    int result = 0;
    reserve(o, p);
    for (size_t i = 0; i < p->n; i++) {
        if (i && p->actions[i].stage != p->actions[i - 1].stage) {
            if (result) {
                release(o, p, i);
                return result;
            }
            sim_pass(o->w, 1); // the world goes on meanwhile, and pods of the plan may go from the stores
            sim_operator_watch(o);
        }
        int r = act(o, owner, &p->actions[i]);
        if (r == DIED)
            return DIED;
        result = result ? result : r;
    }
    return result;
}

// As operator/exec does before it begins with a plan.
static void take_notes(struct sim_operator *o, const struct object *owner, const struct plan *p, int64_t now_ms)
{
    struct gang_memory *m = &o->observations.memory;
    o->owner->note(&o->observations, owner, p, now_ms);
    if (!p->defers_status)
        m->status_wanted_ms = 0;
    else if (!m->status_wanted_ms)
        m->status_wanted_ms = now_ms;
    observations_planned(&o->observations, p, now_ms);
    o->waits_for_room = p->waits_for_room;
    o->last_actions = p->n;
    o->last_plan = plan_describe(p, &o->w->arena);
}

static const char *ticket(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a)
{
    (void)ctx;
    return arena_printf(a, "%s/%d/%d", group_uid, attempt, rank);
}

static struct gang_view look(struct sim_operator *o, const struct object *owner, struct arena *a)
{
    const struct object *const *owned;
    size_t n = store_by_owner(o->processes[0].mirror.stores[KIND_POD], &owner->meta, a, &owned);
    const struct pod **pods = arena_array(a, n, sizeof *pods);
    struct agent_setup *setup = arena_new(a, struct agent_setup);
    for (size_t i = 0; i < n; i++)
        pods[i] = pod_of(owned[i]);
    *setup = (struct agent_setup){
        .image = "cadre",
        .url = "wss://cadre-operator:9443",
        .ca_pem = "CA",
        .keys_id = o->keys,
        .keys_secret = "keys",
        .ticket = ticket,
    };
    return (struct gang_view){
        .pods = pods,
        .n_pods = n,
        .setup = o->keys ? setup : NULL,
        .cluster = o->cluster,
        .memory = &o->observations.memory,
        .now_ms = decision_time_now(&o->time),
    };
}

static void wait_for(struct sim_operator *o, const struct plan *p, int result)
{
    if (result < 0)
        o->due_ms = o->w->now_ms + MIN((int64_t)5 << MIN(o->failures++, 10), 5000);
    else if (p->requeue_ms >= 0)
        o->due_ms = o->w->now_ms + p->requeue_ms;
    if (result >= 0)
        o->failures = 0;
}

void sim_operator_turn(struct sim_operator *o)
{
    const struct object *owner = store_get(o->processes[0].mirror.stores[o->w->kind], "ml", "sim");
    o->dirty = false;
    o->due_ms = -1;
    o->epoch = cluster_epoch(o->cluster);
    if (!owner) // the standby has not seen the object yet
        return;
    struct arena a = ARENA_INIT;
    struct plan plan;
    object_ref(owner);
    observations_time(&o->observations, wall_ms(o), o->w->now_ms);
    struct gang_view gang = look(o, owner, &a);
    o->owner->plan(o, owner, &gang, &a, &plan);
    take_notes(o, owner, &plan, gang.now_ms);
    int result = carry_out(o, owner, &plan);
    wait_for(o, &plan, result);
    object_unref(owner);
    arena_done(&a);
    if (result == DIED)
        sim_operator_die(o);
}
