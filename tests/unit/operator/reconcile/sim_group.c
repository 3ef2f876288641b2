// SPDX-License-Identifier: Apache-2.0
// The WorkerGroup of an operator in gang_operator.h.
#include "tests/unit/operator/reconcile/gang_operator.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/running_spec.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static bool was_scheduled(const struct workergroup *wg)
{
    const struct condition *c = condition_find(wg->status.conditions, wg->status.n_conditions, COND_SCHEDULED);
    return c && c->status == CONDITION_TRUE;
}

static void note(struct observations *n, const struct object *object, const struct plan *p, int64_t now_ms)
{
    if (was_scheduled(workergroup_of(object)) && observations_calm(n, p, now_ms))
        observations_bound(n);
}

// Under agents, a pod is replaced alone, but not while another pod of its index lives.
static void check_replacement(const struct group_view *v, const struct action *a)
{
    for (size_t i = 0; i < v->gang.n_pods; i++) {
        const struct pod *p = v->gang.pods[i];
        const char *end = strrchr(a->name, '-');
        bool same = strncmp(a->name, p->obj.meta.name, (size_t)(end - a->name) + 1) == 0;
        assert_false(same && !pod_terminal(p) && !p->obj.meta.deleted_ms);
    }
}

// A complete gang is not repaired but begins again. No gang begins while pods of another one are visible.
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

// Pods that are newer than the known status of the group are not touched.
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

// The operator's clock shows these times of the world.
static struct connected_peer peer(const struct sim_operator *o, int64_t since_ms, int64_t heard_ms)
{
    return (struct connected_peer){since_ms + o->skew_ms, heard_ms + o->skew_ms};
}

static void see_others(struct sim_operator *o, struct arena *a, struct group_view *v)
{
    struct connected_peer *agents = arena_array(a, SIM_PODS, sizeof *agents);
    struct reach *r = &v->reach;
    size_t n = agents_longest_connected(o->processes[0].registry->agents, agents, SIM_PODS - 1);
    *r = (struct reach){
        .listening_ms = o->time.listening_ms, .expected = v->gang.n_pods + o->has_others, .agents = agents};
    if (o->others_since_ms)
        agents[n++] = peer(o, o->others_since_ms, o->others_heard_ms ? o->others_heard_ms : o->w->now_ms);
    r->n_agents = n;
    if (!o->replica_since_ms)
        return;
    struct connected_peer *replica = arena_new(a, struct connected_peer);
    *replica = peer(o, o->replica_since_ms, o->w->now_ms);
    r->replicas = replica;
    r->n_replicas = 1;
}

// The leader also hears of workers through its link to the standby.
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
    struct agent_facts *facts = arena_array(a, v->gang.n_pods, sizeof *facts);
    int32_t world = MAX(group_world_size(v->wg), v->as_running ? group_world_size(v->as_running) : 0),
            *members = arena_array(a, (size_t)world, sizeof *members);
    for (size_t i = 0; i < v->gang.n_pods; i++)
        see_agent(o, v, i, a, &facts[i]);
    for (int i = 0; i < SIM_PODS; i++) {
        const struct sim_agent *g = o->w->pods[i].agent;
        if (g && g->member && g->rank < world && hears_of(o))
            members[g->rank] = g->member;
    }
    v->agents = facts;
    v->members = members;
    v->leading_ms = o->time.leading_ms;
    see_others(o, a, v);
}

static void plan(struct sim_operator *o, const struct object *object, struct gang_view *gang, struct arena *a,
                 struct plan *ret)
{
    struct store *const *stores = o->processes[0].mirror.stores;
    const struct object *service = store_get(stores[KIND_SERVICE], "ml", "sim");
    const struct object *const *slices;
    size_t n_slices = store_by_owner(stores[KIND_ENDPOINTSLICE], &object->meta, a, &slices);
    gang->service = service ? service_of(service) : NULL;
    struct group_view v = {
        .wg = workergroup_of(object),
        .as_running = running_spec(workergroup_of(object), a),
        .gang = *gang,
        .slices = (const struct endpointslice *const *)slices,
        .n_slices = n_slices,
    };
    see_agents(o, a, &v);
    group_reconcile(&v, a, ret);
    check_plan(&v, ret);
}

const struct sim_owner sim_group = {false, plan, note};
