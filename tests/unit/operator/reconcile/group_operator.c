// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/group_operator.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/before.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const enum kind mirrored[] = {KIND_NODE, KIND_POD, KIND_SERVICE, KIND_ENDPOINTSLICE, KIND_WORKERGROUP};

static int64_t wall_ms(const struct sim_operator *o)
{
    return o->w->now_ms + o->skew_ms;
}

static void set_clocks(struct sim_operator *o)
{
    for (int i = 0; i < SIM_LINES; i++)
        clock_fake_init(&o->processes[i].registry->clock, o->w->now_ms, wall_ms(o));
}

// In the end no stamp that was written lies ahead: a process that comes later could only believe it.
static void set_clock(struct sim_operator *o, int64_t up_to_ms)
{
    o->skew_ms = o->w->calm ? o->max_skew_ms : rand_range(&o->w->rand, -up_to_ms, up_to_ms);
    o->max_skew_ms = MAX(o->max_skew_ms, o->skew_ms);
    set_clocks(o);
}

static bool is_ours(const struct object *o)
{
    return o->kind != KIND_NODE;
}

// The leader's stores wake it and keep its accounting.
static void on_change(void *ctx, const struct object *old, const struct object *now)
{
    struct sim_operator *o = ctx;
    const struct object *any = now ? now : old;
    if (is_ours(any))
        o->dirty = true;
    sim_mirror_account(o->cluster, old, now);
    if (any->kind == KIND_POD && !now)
        agents_pod_gone(o->processes[0].registry->agents, any->meta.uid);
    if (any->kind != KIND_NODE)
        return;
    decision_time_saw(&o->time, old, now);
    if (!now || (old && node_of(old)->ready != node_of(now)->ready))
        o->dirty = true; // as if all nodes had pods of ours
}

// What the standby hears wakes nobody.
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
    agents_free(p->registry->agents); // whose lines are cut
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

// A process begins to lead with the mirror that it has.
static void lead(struct sim_operator *o)
{
    cluster_free(o->cluster);
    o->cluster = cluster_new();
    observations_done(&o->observations);
    observations_init(&o->observations, rand_u64(&o->w->rand));
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
    o->dirty = true; // every group is looked at first
    sim_mirror_subscribe(&o->processes[0].mirror, on_change, o);
}

void sim_operator_die(struct sim_operator *o)
{
    sim_cut_all(o->w, 0);
    process_done(&o->processes[0]);
    if (sim_chance(o->w, 50)) { // the standby takes over, with what it has seen
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
    *o = (struct sim_operator){.w = w, .keys = "ca1-install1", .has_others = true};
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
    if (o->w->calm || sim_chance(o->w, 2))
        set_clock(o, 3600 * 1000);
    set_clocks(o);
    o->dirty = o->dirty || o->w->peers_changed;
    o->w->peers_changed = false;
    follow(&o->processes[0], o->w, 75);
    follow(&o->processes[1], o->w, 20);
}

bool sim_operator_awake(const struct sim_operator *o)
{
    return o->dirty || (o->due_ms >= 0 && o->due_ms <= o->w->now_ms) ||
           (o->waits_for_room && o->epoch != cluster_epoch(o->cluster));
}

// The executor.

enum verdict_of_fate { FATE_WORKS, FATE_FAILS, FATE_ANSWER_LOST, FATE_LATE };

static enum verdict_of_fate fate(struct sim_operator *o)
{
    if (o->w->calm || !sim_chance(o->w, 12))
        return FATE_WORKS;
    return (enum verdict_of_fate)(1 + rand_below(&o->w->rand, 3));
}

static void remember(struct sim_operator *o, enum kind kind, const struct object *object)
{
    if (object)
        store_wrote(o->processes[0].mirror.stores[kind], object);
}

static const char *refusal_reason(const struct err *err)
{
    return strstr(err->msg, "exceeded quota") ? REASON_QUOTA_EXCEEDED : REASON_FORBIDDEN;
}

static int refused(struct sim_operator *o, const struct workergroup *wg, const struct err *err, bool *ret_stop)
{
    observations_refused(&o->observations, wg->status.incarnation, refusal_reason(err), err->msg, wall_ms(o));
    *ret_stop = true;
    return 0;
}

static int dry_run(struct sim_operator *o, const struct workergroup *wg, const struct action *a, bool *ret_stop)
{
    struct err err = ERR_INIT;
    int r = sim_create_pod(o->w, a->body, true, &err);
    if (r == 0)
        return observations_dry_run_ok(&o->observations, a->hash, a->body, strlen(a->body), &err);
    if (r == ERR_FORBIDDEN) {
        observations_dry_run_forbidden(&o->observations, a->hash, wg->status.incarnation, refusal_reason(&err), err.msg,
                                       wall_ms(o));
        *ret_stop = true;
        return 0;
    }
    observations_dry_run_refused(&o->observations, a->hash, err.msg);
    return 0;
}

static int create_pod(struct sim_operator *o, const struct workergroup *wg, const struct action *a,
                      enum verdict_of_fate f, bool *ret_stop)
{
    struct err err = ERR_INIT;
    cluster_assume(o->cluster, "ml", a->name, a->node, a->requests);
    int r = f == FATE_LATE ? sim_create_pod_late(o->w, a->body) : sim_create_pod(o->w, a->body, false, &err);
    if (r == 0 && f == FATE_ANSWER_LOST)
        r = ERR_IO;
    if (r == 0 || r == ERR_EXISTS) {
        remember(o, KIND_POD, &sim_pod(o->w, a->name)->now->obj);
        return 0;
    }
    cluster_unassume(o->cluster, "ml", a->name);
    return r == ERR_FORBIDDEN || r == ERR_INVALID ? refused(o, wg, &err, ret_stop) : r;
}

static int delete_pod(struct sim_operator *o, const struct action *a)
{
    int r = sim_delete_pod(o->w, a->name, a->uid, a->grace_s);
    const struct sim_pod *p = sim_pod(o->w, a->name);
    if (r == 0 && p)
        remember(o, KIND_POD, &p->now->obj);
    return r == ERR_NOT_FOUND || r == ERR_CONFLICT ? 0 : r;
}

static int act(struct sim_operator *o, const struct workergroup *wg, const struct action *a, bool *ret_stop)
{
    enum verdict_of_fate f = fate(o);
    int r = 0;
    if (a->kind == ACTION_EVENT) {
        o->events++;
        return 0;
    }
    if (a->kind == ACTION_COMMAND) {
        struct err ignored = ERR_INIT; // who is not there comes again
        agents_command(o->processes[0].registry->agents, a->uid, wg->obj.meta.uid, a->attempt, a->command, a->body,
                       &ignored);
        return 0;
    }
    o->requests++;
    o->writes += a->kind == ACTION_STATUS;
    if (f == FATE_FAILS || (f == FATE_LATE && a->kind != ACTION_CREATE_POD))
        return ERR_IO;
    switch (a->kind) {
    case ACTION_DRY_RUN:
        r = f == FATE_ANSWER_LOST ? ERR_IO : dry_run(o, wg, a, ret_stop);
        break;
    case ACTION_CREATE_SERVICE:
        r = sim_create_service(o->w, a->body);
        if (f == FATE_WORKS)
            remember(o, KIND_SERVICE, o->w->service);
        r = r == ERR_EXISTS ? 0 : r;
        break;
    case ACTION_CREATE_SLICE:
    case ACTION_PATCH_SLICE:
        r = a->kind == ACTION_CREATE_SLICE ? sim_create_slice(o->w, a->body) : sim_patch_slice(o->w, a->body);
        if (f == FATE_WORKS || r == ERR_EXISTS)
            remember(o, KIND_ENDPOINTSLICE, o->w->slice);
        r = r == ERR_EXISTS ? 0 : r;
        break;
    case ACTION_CREATE_POD:
        return create_pod(o, wg, a, f, ret_stop);
    case ACTION_DELETE_POD:
        r = delete_pod(o, a);
        break;
    case ACTION_STATUS:
        r = sim_patch_status(o->w, a->body);
        if (r == 0 && f == FATE_WORKS)
            remember(o, KIND_WORKERGROUP, o->w->gang);
        break;
    case ACTION_DELETE_OWNER: // there is none with a time to live
    case ACTION_COMMAND:
    case ACTION_EVENT:
        break;
    }
    return r == 0 && f == FATE_ANSWER_LOST ? ERR_IO : r;
}

// 0, an error, or 1: the operator died on the way.
static int carry_out(struct sim_operator *o, const struct workergroup *wg, const struct plan *p)
{
    int err = 0;
    bool stop = false;
    for (size_t i = 0; i < p->n; i++) {
        if (i && p->actions[i].stage != p->actions[i - 1].stage) {
            if (err || stop)
                return err;
            sim_pass(o->w, 1); // the world goes on meanwhile, and pods of the plan may go from the stores
            sim_operator_watch(o);
        }
        if (!o->w->calm && sim_chance(o->w, 3))
            return 1;
        int r = act(o, wg, &p->actions[i], &stop);
        err = err ? err : r;
    }
    return err;
}

static bool was_scheduled(const struct workergroup *wg)
{
    const struct condition *c = condition_find(wg->status.conditions, wg->status.n_conditions, COND_SCHEDULED);
    return c && c->status == CONDITION_TRUE;
}

// As operator/exec does before it begins with a plan.
static void take_notes(struct sim_operator *o, const struct workergroup *wg, const struct plan *p)
{
    struct gang_memory *m = &o->observations.memory;
    if (p->rolls_back)
        observations_rolled_back(&o->observations, p, wall_ms(o));
    else if (p->n_contended)
        observations_shun(&o->observations, p);
    else if (was_scheduled(wg) && (m->rollbacks || m->n_contended))
        observations_bound(&o->observations);
    if (!p->defers_status)
        m->status_wanted_ms = 0;
    else if (!m->status_wanted_ms)
        m->status_wanted_ms = wall_ms(o);
    observations_planned(&o->observations, p);
    o->waits_for_room = p->waits_for_room;
}

// Under agents one pod is replaced, but not while another one of its index lives.
static void check_replacement(const struct group_view *v, const struct action *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        const char *end = strrchr(a->name, '-');
        bool same = strncmp(a->name, p->obj.meta.name, (size_t)(end - a->name) + 1) == 0;
        assert_false(same && !pod_terminal(p) && !p->obj.meta.deleted_ms);
    }
}

// A gang that was complete is not mended but begun again; nor is one begun while pods of another one are seen.
static void check_creation(const struct group_view *v, const struct action *a)
{
    if (v->wg->spec.runtime == RUNTIME_AGENT) {
        check_replacement(v, a);
        return;
    }
    assert_false(was_scheduled(v->wg));
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const char *name = v->gang.pods[i]->obj.meta.name;
        assert_string_not_equal(a->name, name);
        assert_string_equal(strrchr(a->name, '-'), strrchr(name, '-')); // the incarnation
    }
}

// Pods that are newer than what is known of the group are not touched.
static void check_deletion(const struct group_view *v, const struct action *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        bool newer = pod_label_number(p, LABEL_INCARNATION) > v->wg->status.incarnation;
        bool young = v->gang.now_ms - p->obj.meta.created_ms < 60 * 1000;
        assert_false(str_eq(a->name, p->obj.meta.name) && newer && young);
    }
}

static void check_plan(const struct group_view *v, const struct plan *p)
{
    for (size_t i = 0; i < p->n; i++) {
        if (p->actions[i].kind == ACTION_CREATE_POD)
            check_creation(v, &p->actions[i]);
        if (p->actions[i].kind == ACTION_DELETE_POD)
            check_deletion(v, &p->actions[i]);
    }
}

static const char *ticket(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a)
{
    (void)ctx;
    return arena_printf(a, "%s/%d/%d", group_uid, attempt, rank);
}

// Times of the world as this operator's clock has them.
static struct agent_witness witness(const struct sim_operator *o, int64_t since_ms, int64_t heard_ms)
{
    return (struct agent_witness){since_ms + o->skew_ms, heard_ms + o->skew_ms};
}

static void see_others(struct sim_operator *o, struct arena *a, struct group_view *v)
{
    struct agent_witness *agents = arena_array(a, SIM_PODS, sizeof *agents);
    struct reach *r = &v->reach;
    size_t n = agents_witnesses(o->processes[0].registry->agents, agents, SIM_PODS - 1);
    *r = (struct reach){
        .listening_ms = o->time.listening_ms, .expected = v->gang.n_pods + o->has_others, .agents = agents};
    if (o->others_since_ms)
        agents[n++] = witness(o, o->others_since_ms, o->others_heard_ms ? o->others_heard_ms : o->w->now_ms);
    r->n_agents = n;
    if (!o->replica_since_ms)
        return;
    struct agent_witness *replica = arena_new(a, struct agent_witness);
    *replica = witness(o, o->replica_since_ms, o->w->now_ms);
    r->replicas = replica;
    r->n_replicas = 1;
}

// Also by its link to the standby.
static bool hears_of(const struct sim_operator *o)
{
    return !o->w->deaf[0] || (o->replica_since_ms && !o->w->deaf[1]);
}

static void see_agent(const struct sim_operator *o, const struct group_view *v, size_t i, struct arena *a,
                      struct agent_facts *ret)
{
    const char *pod = v->gang.pods[i]->obj.meta.uid, *group = v->wg->obj.meta.uid;
    struct agent_facts other;
    agents_facts(o->processes[0].registry->agents, pod, group, a, ret);
    agents_facts(o->processes[1].registry->agents, pod, group, a, &other);
    if (o->replica_since_ms && other.connected)
        ret->seen_by = "standby";
}

static void see_agents(struct sim_operator *o, struct arena *a, struct group_view *v)
{
    struct agent_setup *setup = arena_new(a, struct agent_setup);
    *setup = (struct agent_setup){.image = "cadre",
                                  .url = "wss://cadre-operator:9443",
                                  .ca_pem = "CA",
                                  .keys_id = o->keys,
                                  .keys_secret = "keys",
                                  .ticket = ticket};
    struct agent_facts *facts = arena_array(a, v->gang.n_pods, sizeof *facts);
    int32_t world = MAX(group_world_size(v->wg), v->before ? group_world_size(v->before) : 0),
            *members = arena_array(a, (size_t)world, sizeof *members);
    for (size_t i = 0; i < v->gang.n_pods; i++)
        see_agent(o, v, i, a, &facts[i]);
    for (int i = 0; i < SIM_PODS; i++) {
        const struct sim_agent *g = o->w->pods[i].agent;
        if (g && g->member && g->rank < world && hears_of(o))
            members[g->rank] = g->member;
    }
    v->gang.setup = o->keys ? setup : NULL;
    v->agents = facts;
    v->members = members;
    v->leading_ms = o->time.leading_ms;
    see_others(o, a, v);
}

void sim_operator_turn(struct sim_operator *o)
{
    struct arena a = ARENA_INIT;
    struct store *const *stores = o->processes[0].mirror.stores;
    const struct object *wg = store_get(stores[KIND_WORKERGROUP], "ml", "sim");
    o->dirty = false;
    o->due_ms = -1;
    o->epoch = cluster_epoch(o->cluster);
    if (!wg) { // the standby has not even seen it
        arena_done(&a);
        return;
    }
    const struct object *const *owned, *const *slices;
    size_t n_slices = store_by_owner(stores[KIND_ENDPOINTSLICE], &wg->meta, &a, &slices);
    size_t n = store_by_owner(stores[KIND_POD], &wg->meta, &a, &owned);
    const struct pod **pods = arena_array(&a, n, sizeof *pods);
    for (size_t i = 0; i < n; i++)
        pods[i] = pod_of(owned[i]);
    const struct object *service = store_get(stores[KIND_SERVICE], "ml", "sim");
    observations_time(&o->observations, wall_ms(o), o->w->now_ms);
    struct group_view v = {
        .wg = workergroup_of(wg),
        .before = group_before(workergroup_of(wg), &a),
        .gang.pods = pods,
        .gang.n_pods = n,
        .gang.service = service ? service_of(service) : NULL,
        .slices = (const struct endpointslice *const *)slices,
        .n_slices = n_slices,
        .gang.cluster = o->cluster,
        .gang.memory = &o->observations.memory,
        .gang.now_ms = decision_time_now(&o->time),
    };
    struct plan plan;
    see_agents(o, &a, &v);
    group_reconcile(&v, &a, &plan);
    check_plan(&v, &plan);
    o->last_actions = plan.n;
    o->last_plan = plan_describe(&plan, &o->w->arena);
    object_ref(wg);
    take_notes(o, workergroup_of(wg), &plan);
    int r = carry_out(o, workergroup_of(wg), &plan);
    if (r < 0)
        o->due_ms = o->w->now_ms + MIN((int64_t)5 << MIN(o->failures++, 10), 5000);
    else if (plan.requeue_ms >= 0)
        o->due_ms = o->w->now_ms + plan.requeue_ms;
    if (r == 0)
        o->failures = 0;
    object_unref(wg);
    arena_done(&a);
    if (r == 1)
        sim_operator_die(o);
}
