// SPDX-License-Identifier: Apache-2.0
// Single events in the life of a group, in a simulated world in which nothing else goes wrong: their costs and their
// consequences.
#include "tests/unit/operator/reconcile/group_life.h"

#include "common/base/mem.h"
#include "operator/reconcile/reason.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

// The pods, a dry run, the Service, the EndpointSlice, one status, one Event.
static void a_group_that_starts_at_once_costs_its_pods_and_four_requests(void **state)
{
    (void)state;
    struct life *l = life_calm(&(struct sim_spec){.replicas = 8, .template_valid = true});
    life_pass(l, 1000);
    assert_true(life_is(l, COND_READY));
    assert_int_equal(l->o.requests, 8 + 4); // dry run, Service, EndpointSlice, status
    assert_int_equal(sim_names(&l->w), 8);
    assert_int_equal(l->o.writes, 1);
    assert_int_equal(l->o.events, 1);
    life_end(l);
}

static const struct sim_spec agents = {
    .replicas = 8, .template_valid = true, .agent = true, .module = true, .max_restarts = 3};

// The processes run. A status says before their start that they start in this attempt.
static void a_group_under_agents_costs_one_status_more(void **state)
{
    (void)state;
    struct life *l = life_calm(&agents);
    life_pass(l, 1000);
    assert_true(life_is(l, COND_READY));
    assert_int_equal(life_group(l)->status.ready_workers, 8);
    assert_int_equal(l->o.requests, 8 + 5);
    assert_int_equal(l->o.writes, 2);
    life_end(l);
}

static void a_process_that_dies_restarts_all_ranks_in_place(void **state)
{
    (void)state;
    struct life *l = life_calm(&agents);
    life_pass(l, 1000);
    sim_agent_exit(sim_pod(&l->w, "sim-3-0")->agent, &l->w, 137, 9);
    life_pass(l, 10);
    assert_false(life_is(l, COND_READY));
    assert_string_equal(life_reason(l, COND_READY), REASON_RESTARTING);
    life_pass(l, 3000);
    const struct workergroup_status *s = &life_group(l)->status;
    assert_true(life_is(l, COND_READY));
    assert_int_equal(s->attempt, 2);
    assert_int_equal(s->incarnation, 0);
    assert_int_equal(s->restarts_counted, 1);
    assert_int_equal(s->last_failure.rank, 3);
    assert_int_equal(s->last_failure.exit_code, 137);
    for (int i = 0; i < 8; i++) {
        const struct sim_pod *p = &l->w.pods[i];
        assert_true(sim_live(p) && p->agent->attempt == 2 && p->agent->process == SIM_PROCESS_RUNNING);
    }
    life_end(l);
}

static void with_restart_policy_worker_the_others_run_on(void **state)
{
    (void)state;
    struct sim_spec spec = agents;
    spec.restarts_worker = true;
    struct life *l = life_calm(&spec);
    life_pass(l, 1000);
    sim_agent_exit(sim_pod(&l->w, "sim-3-0")->agent, &l->w, 1, 0);
    life_pass(l, 3000);
    assert_true(life_is(l, COND_READY));
    for (int i = 0; i < 8; i++)
        assert_int_equal(l->w.pods[i].agent->attempt, l->w.pods[i].index == 3 ? 2 : 1);
    life_end(l);
}

// The pods need not change for a change of the worker.
static void a_changed_worker_restarts_processes_in_their_pods(void **state)
{
    (void)state;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
        struct sim_spec spec = agents;
        spec.restarts_worker = one_by_one;
        struct life *l = life_calm(&spec);
        life_pass(l, 1000);
        spec.worker_version++;
        sim_edit(&l->w, &spec);
        life_pass(l, 1000);
        const struct workergroup_status *s = &life_group(l)->status;
        assert_true(life_is(l, COND_READY));
        assert_int_equal(s->attempt, 2);
        assert_int_equal(s->incarnation, 0);
        assert_int_equal(s->restarts, 0);
        for (int i = 0; i < 8; i++)
            assert_int_equal(l->w.pods[i].agent->worker_version, 1);
        life_end(l);
    }
}

static void a_group_made_suspended_begins_with_attempt_1(void **state)
{
    (void)state;
    struct sim_spec spec = agents;
    spec.suspend = true;
    struct life *l = life_calm(&spec);
    life_pass(l, 1000);
    assert_true(life_is(l, COND_SUSPENDED));
    spec.suspend = false;
    sim_edit(&l->w, &spec);
    life_pass(l, 1000);
    assert_true(life_is(l, COND_READY));
    assert_int_equal(life_group(l)->status.attempt, 1);
    assert_int_equal(life_group(l)->status.incarnation, 0);
    life_end(l);
}

static void with_success_policy_rank_zero_the_others_are_stopped(void **state)
{
    (void)state;
    struct sim_spec spec = agents;
    spec.rank_zero = true;
    struct life *l = life_calm(&spec);
    life_pass(l, 1000);
    sim_agent_exit(sim_pod(&l->w, "sim-0-0")->agent, &l->w, 0, 0);
    life_pass(l, 1000);
    assert_true(life_is(l, COND_SUCCEEDED));
    assert_int_equal(life_pods(l), 0);
    assert_int_equal(life_group(l)->status.restarts, 0);
    life_end(l);
}

// Twice, so that the second node is not avoided for ever either.
static void a_group_moves_off_a_node_that_lost_one_of_its_gpus(void **state)
{
    (void)state;
    struct sim_spec spec = agents;
    spec.replicas = 6;
    struct life *l = life_calm(&spec);
    life_pass(l, 1000);
    for (int time = 1; time <= 2; time++) {
        char pod[32], node[64];
        snprintf(pod, sizeof pod, "sim-0-%d", time - 1);
        snprintf(node, sizeof node, "%s", sim_pod(&l->w, pod)->node);
        sim_agent_lose_gpu(sim_pod(&l->w, pod)->agent);
        life_turn(l);
        assert_true(life_is(l, COND_GPU_LOST));
        const struct workergroup_status *s = &life_group(l)->status;
        assert_string_equal(s->last_failure.reason, FAILURE_GPU_LOST);
        assert_non_null(strstr(s->last_failure.message, "GPU-3f0c"));
        life_pass(l, 20 * 1000);
        assert_true(life_is(l, COND_READY));
        assert_false(life_is(l, COND_GPU_LOST));
        assert_int_equal(life_group(l)->status.restarts_counted, 0);
        for (int i = 0; i < SIM_PODS; i++)
            assert_false(sim_live(&l->w.pods[i]) && strcmp(l->w.pods[i].node, node) == 0);
    }
    life_end(l);
}

// 1 s, 2 s, 4 s, and again the shortest pause after a time of health.
static void pauses_grow_until_the_group_was_healthy(void **state)
{
    (void)state;
    static const int wanted[] = {1, 2, 3, 1};
    struct sim_spec spec = agents;
    spec.max_restarts = 10;
    struct life *l = life_calm(&spec);
    life_pass(l, 1000);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        sim_agent_exit(sim_pod(&l->w, "sim-3-0")->agent, &l->w, 1, 0);
        life_pass(l, 10 * 1000);
        assert_true(life_is(l, COND_READY));
        assert_int_equal(life_group(l)->status.restarts_in_a_row, wanted[i]);
        if (i == 2)
            life_pass(l, 60 * 1000);
    }
    assert_int_equal(life_group(l)->status.restarts, ARRAY_LEN(wanted));
    life_end(l);
}

// Nothing that runs is touched, and the new operator soon knows its state again.
static void an_operator_that_dies_costs_a_running_group_nothing(void **state)
{
    (void)state;
    struct life *l = life_calm(&agents);
    life_pass(l, 1000);
    int writes = l->o.writes;
    sim_operator_die(&l->o);
    life_pass(l, 60 * 1000);
    assert_true(life_is(l, COND_READY));
    assert_int_equal(l->o.writes, writes);
    for (int i = 0; i < 8; i++)
        assert_int_equal(l->w.pods[i].agent->attempt, 1);
    life_end(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_that_starts_at_once_costs_its_pods_and_four_requests),
        cmocka_unit_test(a_group_under_agents_costs_one_status_more),
        cmocka_unit_test(a_process_that_dies_restarts_all_ranks_in_place),
        cmocka_unit_test(with_restart_policy_worker_the_others_run_on),
        cmocka_unit_test(a_changed_worker_restarts_processes_in_their_pods),
        cmocka_unit_test(a_group_made_suspended_begins_with_attempt_1),
        cmocka_unit_test(with_success_policy_rank_zero_the_others_are_stopped),
        cmocka_unit_test(a_group_moves_off_a_node_that_lost_one_of_its_gpus),
        cmocka_unit_test(pauses_grow_until_the_group_was_healthy),
        cmocka_unit_test(an_operator_that_dies_costs_a_running_group_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
