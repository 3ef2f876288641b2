// SPDX-License-Identifier: Apache-2.0
// Many random lives of one WorkerGroup. For a while everything goes wrong that can: requests are refused or lost, the
// operator dies between two actions or sees the world late, nodes fall silent or go, pods fail, people edit the spec.
// Then nothing does any more, and the group must reach what its spec asks for, by what wakes the operator alone, and
// stay there without another write.
//
//   SIM_SEEDS=N   how many lives            SIM_SEED=S   only that one, told step by step
#include "tests/unit/group_operator.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/group_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SEEDS = 2000, WILD_STEPS = 60, CALM_STEPS = 400, CALM_WRITES = 60, LOOK_MS = 500 };

static uint64_t seed_now;
static bool loud;

struct life {
    struct sim_world w;
    struct sim_operator o;
    int32_t attempt, incarnation, restarts; // as the status said last
    bool suspended;
};

#define must(condition, ...)                                                                                 \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "seed %" PRIu64 " (run again with SIM_SEED=%" PRIu64 "): ", seed_now, seed_now); \
            fprintf(stderr, __VA_ARGS__);                                                                    \
            fprintf(stderr, "\n");                                                                           \
            fail_msg("%s", #condition);                                                                      \
        }                                                                                                    \
    } while (0)

static const struct workergroup *group_of(const struct life *l)
{
    return workergroup_of(l->w.wg);
}

static const struct condition *condition_of(const struct life *l, const char *type)
{
    const struct workergroup_status *s = &group_of(l)->status;
    return condition_find(s->conditions, s->n_conditions, type);
}

static bool is(const struct life *l, const char *type)
{
    const struct condition *c = condition_of(l, type);
    return c && c->status == CONDITION_TRUE;
}

static const char *reason_of(const struct life *l, const char *type)
{
    const struct condition *c = condition_of(l, type);
    return c ? c->reason : "(none)";
}

static void tell(const struct life *l, const char *what)
{
    if (!loud)
        return;
    fprintf(stderr, "%" PRId64 " %s", l->w.now_ms, what);
    fprintf(stderr, "%s", what[0] && what[strlen(what) - 1] == '\n' ? "" : "\n");
}

// What must hold whatever happens.

static void check_pods(const struct life *l)
{
    const struct sim_world *w = &l->w;
    for (int i = 0; i < SIM_PODS; i++)
        for (int k = 0; w->pods[i].now && k < i; k++) {
            const struct sim_pod *p = &w->pods[i], *q = &w->pods[k];
            if (!q->now || p->incarnation != q->incarnation)
                continue;
            must(p->index != q->index, "two pods of index %d in one incarnation", p->index);
            must(p->attempt == q->attempt, "attempts %d and %d in one incarnation", p->attempt, q->attempt);
            must(p->world_size == q->world_size, "WORLD_SIZE %d and %d together", p->world_size, q->world_size);
            must(pod_spec_hash(p->now) == pod_spec_hash(q->now), "pods of two specs together");
        }
}

static void check_status(struct life *l)
{
    const struct workergroup_status *s = &group_of(l)->status;
    must(s->attempt >= l->attempt, "attempt went from %d to %d", l->attempt, s->attempt);
    must(s->incarnation >= l->incarnation, "incarnation went from %d to %d", l->incarnation, s->incarnation);
    must(s->restarts_counted <= s->restarts, "%d of %d restarts count", s->restarts_counted, s->restarts);
    must(s->restarts_counted <= l->w.spec.max_restarts, "%d restarts of %d", s->restarts_counted,
         l->w.spec.max_restarts);
    must(s->restarts <= l->restarts || s->attempt > l->attempt, "restart %d in attempt %d", s->restarts, s->attempt);
    must(!l->suspended || is(l, COND_SUSPENDED) || s->attempt > l->attempt, "resumed in attempt %d", s->attempt);
    l->attempt = s->attempt;
    l->incarnation = s->incarnation;
    l->restarts = s->restarts;
    l->suspended = is(l, COND_SUSPENDED);
    if (!s->n_conditions)
        return;
    must(s->n_conditions == 6, "%zu conditions", s->n_conditions);
    must(is(l, COND_FAILED) + is(l, COND_SUCCEEDED) + is(l, COND_SUSPENDED) + is(l, COND_READY) <= 1,
         "Ready, Succeeded, Failed and Suspended exclude each other");
    must(!is(l, COND_READY) || is(l, COND_SCHEDULED), "Ready, but not Scheduled");
    for (size_t i = 0; i < s->n_conditions; i++)
        must(s->conditions[i].observed_generation <= s->observed_generation && !str_empty(s->conditions[i].reason),
             "%s speaks of a generation that nobody has seen, or has no reason", s->conditions[i].type);
}

// What people and fate do.

static struct sim_node *any_node(struct life *l)
{
    return &l->w.nodes[rand_below(&l->w.rand, SIM_NODES)];
}

static struct sim_pod *any_pod(struct life *l)
{
    size_t from = rand_below(&l->w.rand, SIM_PODS);
    for (size_t i = 0; i < SIM_PODS; i++) {
        struct sim_pod *p = &l->w.pods[(from + i) % SIM_PODS];
        if (sim_live(p) && p->node)
            return p;
    }
    return NULL;
}

static void somebody_edits(struct life *l)
{
    struct sim_spec s = l->w.spec;
    switch (rand_below(&l->w.rand, 4)) {
    case 0:
        s.replicas = 1 + (int32_t)rand_below(&l->w.rand, 4);
        break;
    case 1:
        s.template_version++;
        s.template_valid = sim_chance(&l->w, 75);
        break;
    case 2:
        s.suspend = !s.suspend;
        break;
    case 3:
        s.max_restarts++;
        break;
    }
    tell(l, "somebody edits the spec");
    sim_edit(&l->w, &s);
}

static void a_node_changes(struct life *l)
{
    struct sim_node *n = any_node(l);
    if (!n->now) {
        tell(l, "a node is added");
        sim_node_add(&l->w, n);
    } else if (sim_chance(&l->w, 25)) {
        tell(l, "a node is removed");
        sim_node_remove(&l->w, n);
    } else if (sim_chance(&l->w, 50)) {
        tell(l, n->ready ? "a node falls silent" : "a node is back");
        sim_node_ready(&l->w, n, !n->ready);
    } else {
        n->foreign = (int32_t)rand_below(&l->w.rand, (uint64_t)n->gpus + 1);
        n->contended = sim_chance(&l->w, 20);
        sim_node_ready(&l->w, n, n->ready);
    }
}

static void something_happens(struct life *l)
{
    struct sim_world *w = &l->w;
    struct sim_pod *p = any_pod(l);
    switch (rand_below(&w->rand, 12)) {
    case 0:
        somebody_edits(l);
        break;
    case 1:
    case 2:
        a_node_changes(l);
        break;
    case 3:
        w->quota = sim_chance(w, 50) ? (int32_t)rand_below(&w->rand, 4) : SIM_PODS;
        break;
    case 4:
        w->forbidden = sim_chance(w, 20);
        break;
    case 5:
        tell(l, "the Service is deleted");
        sim_delete_service(w);
        break;
    case 6:
        tell(l, "a pod is evicted");
        if (p)
            sim_evict(w, p);
        break;
    case 7:
        tell(l, "a pod is deleted");
        if (p)
            sim_delete_pod(w, p->now->obj.meta.name, p->now->obj.meta.uid, sim_chance(w, 30) ? 0 : -1);
        break;
    case 8:
        tell(l, "a pod fails");
        if (p)
            sim_fail(w, p);
        break;
    case 9:
        if (p && p->agent) {
            tell(l, "an agent loses its connection");
            sim_agent_cut(p->agent, (int)rand_below(&w->rand, SIM_LINES));
        }
        break;
    case 10:
        if (p && p->agent) {
            tell(l, "a process is killed");
            sim_agent_exit(p->agent, w, 137, 9);
        }
        break;
    default:
        break;
    }
}

static void turn(struct life *l)
{
    sim_operator_watch(&l->o);
    for (int i = 0; i < 8 && sim_operator_awake(&l->o); i++) {
        sim_operator_turn(&l->o);
        if (loud && *l->o.last_plan)
            tell(l, l->o.last_plan);
        check_status(l);
        check_pods(l);
        sim_operator_watch(&l->o);
    }
}

static void live_wildly(struct life *l)
{
    for (int i = 0; i < WILD_STEPS; i++) {
        sim_pass(&l->w, rand_range(&l->w.rand, 1, sim_chance(&l->w, 10) ? 30000 : 2000));
        sim_operator_land(&l->o);
        if (sim_chance(&l->w, 50))
            something_happens(l);
        turn(l);
    }
}

static void calm_down(struct life *l)
{
    struct sim_world *w = &l->w;
    tell(l, "all is calm from now on");
    w->calm = true;
    w->quota = SIM_PODS;
    w->forbidden = false;
    for (int i = 0; i < SIM_NODES; i++)
        w->nodes[i].contended = false;
    sim_operator_land(&l->o);
}

// Where it must end.

static int32_t free_gpus(const struct life *l, bool on_one_node)
{
    int32_t sum = 0, most = 0;
    for (int i = 0; i < SIM_NODES; i++) {
        const struct sim_node *n = &l->w.nodes[i];
        int32_t gpus = n->now && n->ready ? n->gpus - n->foreign : 0;
        sum += gpus;
        most = MAX(most, gpus);
    }
    return on_one_node ? most : sum;
}

static int32_t count_live(const struct life *l)
{
    int32_t n = 0;
    for (int i = 0; i < SIM_PODS; i++)
        n += sim_live(&l->w.pods[i]);
    return n;
}

// Nothing is under way: no pod is about to go, the operator has no reason to look and had nothing to do.
static bool at_rest(const struct life *l)
{
    for (int i = 0; i < SIM_PODS; i++)
        if (l->w.pods[i].now && sim_going(&l->w, &l->w.pods[i]))
            return false;
    return !sim_operator_awake(&l->o) && l->o.due_ms < 0;
}

// NULL: the group is where its spec wants it. Else what is missing.
static const char *missing(const struct life *l)
{
    const struct workergroup *wg = group_of(l);
    const struct workergroup_status *s = &wg->status;
    const struct sim_spec *spec = &l->w.spec;
    int32_t live = count_live(l);
    if (s->observed_generation != wg->obj.meta.generation)
        return "the status speaks of an older spec";
    if (is(l, COND_SUCCEEDED) || is(l, COND_FAILED))
        return live ? "a finished group has live pods" : NULL;
    if (spec->suspend)
        return live || !is(l, COND_SUSPENDED) ? "not suspended" : NULL;
    if (is(l, COND_SUSPENDED))
        return "suspended";
    if (!spec->template_valid) {
        if (!str_eq(reason_of(l, COND_ACCEPTED), REASON_INVALID_TEMPLATE))
            return "a template that is refused is not said to be";
        bool said = is(l, COND_READY) || str_eq(reason_of(l, COND_READY), REASON_INVALID_TEMPLATE);
        return live && l->w.mode == SIM_RUNS_ON && !said ? "pods of the earlier spec are not ready" : NULL;
    }
    if (!is(l, COND_ACCEPTED))
        return "not accepted";
    if (!live && spec->replicas > free_gpus(l, spec->strict_pack)) {
        bool waits = str_eq(reason_of(l, COND_READY), REASON_INSUFFICIENT) ||
                     str_eq(reason_of(l, COND_READY), REASON_INFEASIBLE);
        return waits ? NULL : "does not wait for room";
    }
    if (l->w.mode != SIM_RUNS_ON)
        return "not finished";
    if (live != spec->replicas || s->ready_replicas != spec->replicas || !is(l, COND_READY))
        return "not all pods run";
    for (int i = 0; i < SIM_PODS; i++)
        if (sim_live(&l->w.pods[i]) && pod_spec_hash(l->w.pods[i].now) != group_case_hash(wg))
            return "pods of an earlier spec run";
    return l->w.service ? NULL : "no Service";
}

static void check_end(const struct life *l)
{
    const struct group_failure *f = &group_of(l)->status.last_failure;
    if (str_eq(reason_of(l, COND_FAILED), REASON_MAX_RESTARTS))
        must(group_of(l)->status.restarts_counted <= l->w.spec.max_restarts && f->time_ms, "failed too early");
    if (is(l, COND_FAILED))
        must(f->rank >= 0 && f->pod && f->reason, "it failed, but who?");
    must(l->w.mode != SIM_SUCCEEDS || !is(l, COND_READY) || count_live(l), "nobody is ready");
}

static void live_calmly(struct life *l)
{
    int writes = l->o.writes, quiet = 0;
    for (int i = 0; i < CALM_STEPS && quiet < 3; i++) {
        sim_pass(&l->w, LOOK_MS);
        turn(l);
        quiet = at_rest(l) && !missing(l) ? quiet + 1 : 0;
    }
    const char *what = missing(l);
    must(!what, "%s; Ready is %s; the last plan was\n%s", what, reason_of(l, COND_READY), l->o.last_plan);
    must(quiet, "it never rests; the last plan was\n%s", l->o.last_plan);
    must(l->o.writes - writes <= CALM_WRITES, "%d writes of the status", l->o.writes - writes);
    check_end(l);
}

// Later looks, by the same process and by a new one, change nothing.
static void stay(struct life *l)
{
    int writes = l->o.writes;
    for (int i = 0; i < 4; i++) {
        sim_pass(&l->w, 60 * 1000);
        if (i == 2) {
            notebook_done(&l->o.notebook);
            notebook_init(&l->o.notebook, 1);
        }
        l->o.dirty = true;
        turn(l);
    }
    must(!missing(l) && l->o.last_actions == 0, "it did not stay; the last plan was\n%s", l->o.last_plan);
    must(l->o.writes == writes, "another write of the status without a reason");
}

static void one_life(uint64_t seed)
{
    struct life *l = xcalloc(1, sizeof *l);
    seed_now = seed;
    sim_init(&l->w, seed);
    sim_operator_init(&l->o, &l->w);
    live_wildly(l);
    calm_down(l);
    live_calmly(l);
    stay(l);
    sim_operator_done(&l->o);
    sim_done(&l->w);
    free(l);
}

static void every_life_ends_as_its_spec_asks(void **state)
{
    (void)state;
    int64_t n = SEEDS, seed = 0;
    loud = str_to_i64(getenv("SIM_SEED"), &seed);
    str_to_i64(getenv("SIM_SEEDS"), &n);
    for (int64_t i = 1; i <= n && !loud; i++)
        one_life((uint64_t)i);
    if (loud)
        one_life((uint64_t)seed);
}

// A life of a group of 8 in which nothing goes wrong by itself.
static struct life *calm_life(const struct sim_spec *spec)
{
    struct life *l = xcalloc(1, sizeof *l);
    seed_now = 1;
    sim_init(&l->w, seed_now);
    for (int i = 0; i < SIM_NODES; i++) {
        l->w.nodes[i].gpus = 2;
        sim_node_add(&l->w, &l->w.nodes[i]);
    }
    l->w.mode = SIM_RUNS_ON;
    l->w.calm = true;
    sim_edit(&l->w, spec);
    sim_operator_init(&l->o, &l->w);
    return l;
}

static void calm_end(struct life *l)
{
    sim_operator_done(&l->o);
    sim_done(&l->w);
    free(l);
}

static void pass(struct life *l, int64_t ms)
{
    for (int64_t end = l->w.now_ms + ms; l->w.now_ms < end; sim_pass(&l->w, 10))
        turn(l);
}

// Pods, a dry run, the Service, one status, one event.
static void a_group_that_starts_at_once_costs_its_pods_and_four_requests(void **state)
{
    (void)state;
    struct life *l = calm_life(&(struct sim_spec){.replicas = 8, .template_valid = true});
    pass(l, 1000);
    assert_true(is(l, COND_READY));
    assert_int_equal(l->o.requests, 8 + 3);
    assert_int_equal(l->o.writes, 1);
    assert_int_equal(l->o.events, 1);
    calm_end(l);
}

static const struct sim_spec agents = {
    .replicas = 8, .template_valid = true, .agent = true, .module = true, .max_restarts = 3};

// Processes run: that they were started in this attempt is written before.
static void a_group_under_agents_costs_one_status_more(void **state)
{
    (void)state;
    struct life *l = calm_life(&agents);
    pass(l, 1000);
    assert_true(is(l, COND_READY));
    assert_int_equal(group_of(l)->status.ready_workers, 8);
    assert_int_equal(l->o.requests, 8 + 4);
    assert_int_equal(l->o.writes, 2);
    calm_end(l);
}

static void a_process_that_dies_restarts_all_ranks_in_place(void **state)
{
    (void)state;
    struct life *l = calm_life(&agents);
    pass(l, 1000);
    sim_agent_exit(sim_pod(&l->w, "sim-3-0")->agent, &l->w, 137, 9);
    pass(l, 10);
    assert_false(is(l, COND_READY));
    assert_string_equal(reason_of(l, COND_READY), REASON_RESTARTING);
    pass(l, 3000);
    const struct workergroup_status *s = &group_of(l)->status;
    assert_true(is(l, COND_READY));
    assert_int_equal(s->attempt, 2);
    assert_int_equal(s->incarnation, 0);
    assert_int_equal(s->restarts_counted, 1);
    assert_int_equal(s->last_failure.rank, 3);
    assert_int_equal(s->last_failure.exit_code, 137);
    for (int i = 0; i < 8; i++) {
        const struct sim_pod *p = &l->w.pods[i];
        assert_true(sim_live(p) && p->agent->attempt == 2 && p->agent->process == SIM_PROCESS_RUNNING);
    }
    calm_end(l);
}

static void with_restart_policy_worker_the_others_run_on(void **state)
{
    (void)state;
    struct sim_spec spec = agents;
    spec.restarts_worker = true;
    struct life *l = calm_life(&spec);
    pass(l, 1000);
    sim_agent_exit(sim_pod(&l->w, "sim-3-0")->agent, &l->w, 1, 0);
    pass(l, 3000);
    assert_true(is(l, COND_READY));
    for (int i = 0; i < 8; i++)
        assert_int_equal(l->w.pods[i].agent->attempt, l->w.pods[i].index == 3 ? 2 : 1);
    calm_end(l);
}

// Nothing that runs is touched, and what it has become of it is known again soon.
static void an_operator_that_dies_costs_a_running_group_nothing(void **state)
{
    (void)state;
    struct life *l = calm_life(&agents);
    pass(l, 1000);
    int writes = l->o.writes;
    sim_operator_die(&l->o);
    pass(l, 60 * 1000);
    assert_true(is(l, COND_READY));
    assert_int_equal(l->o.writes, writes);
    for (int i = 0; i < 8; i++)
        assert_int_equal(l->w.pods[i].agent->attempt, 1);
    calm_end(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_that_starts_at_once_costs_its_pods_and_four_requests),
        cmocka_unit_test(a_group_under_agents_costs_one_status_more),
        cmocka_unit_test(a_process_that_dies_restarts_all_ranks_in_place),
        cmocka_unit_test(with_restart_policy_worker_the_others_run_on),
        cmocka_unit_test(an_operator_that_dies_costs_a_running_group_nothing),
        cmocka_unit_test(every_life_ends_as_its_spec_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
