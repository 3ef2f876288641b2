// SPDX-License-Identifier: Apache-2.0
// Agents understand what the operator tells them. Every command in the golden cases of tests/golden/plan is read by the
// agent's own reader, and means what the group asks for.
#include "tests/unit/support/golden.h"
#include "tests/unit/support/group_case.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record.h"
#include "operator/reconcile/names.h"
#include "worker/agent/message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static int seen[UINT8_MAX]; // commands of each type

static const struct pod *pod_of_action(const struct group_case *c, const struct action *x)
{
    for (size_t i = 0; i < c->view.gang.n_pods; i++)
        if (str_eq(c->view.gang.pods[i]->obj.meta.uid, x->uid))
            return c->view.gang.pods[i];
    fail_msg("%s: there is no such pod", x->name);
    return NULL;
}

static const char *var(const struct command *c, const char *name)
{
    for (size_t i = 0; i < c->env.n_vars; i++)
        if (str_eq(c->env.vars[i].name, name))
            return c->env.vars[i].value;
    return NULL;
}

static void check_program(const struct worker_spec *s, const struct command *c)
{
    if (s->module) {
        assert_string_equal(c->argv[0], "cadre-worker");
        assert_string_equal(var(c, "CADRE_MODULE"), s->module);
        if (s->roles_json) {
            assert_string_equal(var(c, "CADRE_ROLES"), s->roles_json);
        } else {
            assert_string_equal(var(c, "CADRE_CLASS"), s->class_name);
            assert_string_equal(var(c, "CADRE_INIT"), s->init_json);
        }
    } else if (s->n_command) {
        for (size_t i = 0; i < s->n_command; i++)
            assert_string_equal(c->argv[i], s->command[i]);
        assert_null(c->argv[s->n_command + s->n_args]);
    } else {
        assert_null(c->argv); // the command of the pod
    }
    assert_int_equal(c->env.gpus.visibility,
                     s->module || s->gpu_visibility == GPU_VISIBILITY_OWN ? GPUS_OWN : GPUS_ALL);
    assert_int_equal(c->env.gpus.per_worker, s->gpus < 0 ? GPUS_SHARE : s->gpus);
    assert_int_equal(c->env.gpus.count, 1);
}

static bool is_one_of(int n, const int *list, size_t n_list)
{
    for (size_t i = 0; i < n_list; i++)
        if (list[i] == n)
            return true;
    return false;
}

// A worker has GPUs of its group, even if other groups share the pod. If these GPUs are not known, the worker has the
// GPUs of its pod.
static void check_gpus(const struct environment_group *g, const struct environment_process *p)
{
    const struct gpus_worker worker = {.local_rank = p->local_rank, .local_world_size = g->local_world_size};
    struct gpus_view view;
    struct err err = ERR_INIT;
    struct arena a = ARENA_INIT;
    if (p->gpus) {
        for (size_t n = 0; n < p->n_gpus; n++)
            assert_true(is_one_of(p->gpus[n], g->gpus.indices, g->gpus.n_indices));
        return;
    }
    assert_null(g->gpus.indices);
    assert_int_equal(gpus_view(&g->gpus, &worker, &a, &view, &err), 0);
    assert_null(view.visible);
    arena_done(&a);
}

// Start commands for groups on bundles.
static void check_start_on_bundles(const struct group_case *k, const struct command *c)
{
    const struct environment_group *g = &c->env;
    assert_true(g->nnodes > g->node_rank);
    assert_int_equal(g->world_size, group_world_size(k->view.wg));
    assert_true(g->master_port >= 29500);
    assert_true(!g->gpus.n_indices || g->gpus.count >= (int)g->gpus.n_indices);
    assert_int_equal(c->n_processes, g->local_world_size);
    for (size_t i = 0; i < c->n_processes; i++) {
        const struct environment_process *p = &c->processes[i];
        assert_int_equal(p->local_rank, i);
        assert_true(p->rank < g->world_size && p->ticket);
        check_gpus(g, p);
    }
}

static void check_start(const struct group_case *k, const struct action *x, const struct command *c)
{
    const struct workergroup *wg = k->view.wg;
    int32_t index = pod_label_number(pod_of_action(k, x), LABEL_INDEX), each = wg->spec.workers_per_replica;
    assert_int_equal(c->env.node_rank, index);
    assert_int_equal(c->env.nnodes, wg->spec.replicas);
    assert_int_equal(c->env.world_size, group_world_size(wg));
    assert_int_equal(c->env.master_port, wg->spec.rendezvous_port);
    assert_true(c->type == RECORD_RESTART || c->n_processes == (size_t)each);
    for (size_t i = 0; i < c->n_processes; i++) {
        const struct environment_process *p = &c->processes[i];
        char ticket[64];
        snprintf(ticket, sizeof ticket, "ticket-%d-%d", c->attempt, p->rank);
        assert_int_equal(p->rank, index * each + p->local_rank);
        assert_string_equal(p->ticket, ticket);
    }
    check_program(&wg->spec.worker, c);
}

static void check_command(struct group_case *k, const struct action *x)
{
    struct command *c = NULL;
    struct err err = ERR_INIT;
    struct arena a = ARENA_INIT;
    assert_true(command_is(x->command));
    if (command_parse(x->command, x->body, strlen(x->body), &c, &err) < 0)
        fail_msg("%s: %s", x->body, err.msg);
    assert_string_equal(c->group, k->view.wg->obj.meta.uid);
    assert_int_equal(c->attempt, x->attempt);
    if (c->type == RECORD_PREPARE && !k->view.wg->spec.n_placement_groups) {
        assert_string_equal(c->master_addr, group_master_host(k->view.wg, &a));
        assert_string_equal(c->master_ip, "10.0.0.7");
    }
    if (c->type == RECORD_START || c->type == RECORD_RESTART)
        (k->view.wg->spec.n_placement_groups ? check_start_on_bundles(k, c) : check_start(k, x, c));
    else
        assert_int_equal(c->grace_ms, 25000);
    seen[c->type]++;
    command_unref(c);
    arena_done(&a);
}

static void check_case(const char *in)
{
    struct group_case *c = group_case_new(in);
    const struct plan *p = group_case_decide(c);
    for (size_t i = 0; i < p->n; i++)
        if (p->actions[i].kind == ACTION_COMMAND)
            check_command(c, &p->actions[i]);
    group_case_free(c);
}

static void every_command_is_understood(void **state)
{
    (void)state;
    assert_true(golden_each("tests/golden/plan", "in.json", check_case) > 0);
    assert_true(seen[RECORD_PREPARE] && seen[RECORD_START] && seen[RECORD_RESTART] && seen[RECORD_STOP]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_command_is_understood)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
