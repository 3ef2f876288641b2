// SPDX-License-Identifier: Apache-2.0
// Groups of a local run whose agent ends at once, and cannot be started while the process has no more descriptors.
#include "operator/api/object_decode.h"
#include "operator/local/local_object.h"
#include "operator/local/local_provision.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/local/trust.h"
#include "tests/unit/support/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sysexits.h>

struct world {
    struct loop *loop;
    struct gateway *gateway;
    struct local_provision *groups;
    struct provisioner provisioner;
    struct authority authority;
    struct gateway_config config;
    struct rlimit descriptors;
};

static int setup(void **state)
{
    struct world *w = *state = xcalloc(1, sizeof *w);
    struct err err = ERR_INIT;
    w->loop = loop_new();
    w->groups = local_provision_new(w->loop, 1, 1, 1, NULL);
    w->provisioner = local_provision_provisioner(w->groups);
    w->authority = trust_authority(NULL);
    w->config = (struct gateway_config){.authority = &w->authority, .provisioner = &w->provisioner};
    w->gateway = gateway_new(w->loop, &w->config, &err);
    assert_non_null(w->gateway);
    local_provision_run(
        w->groups,
        &(struct local_run){
            .loop = w->loop, .gateway = w->gateway, .agent = "/bin/false", .url = "unix:none", .several = true});
    return getrlimit(RLIMIT_NOFILE, &w->descriptors);
}

static int teardown(void **state)
{
    struct world *w = *state;
    gateway_free(w->gateway);
    local_provision_free(w->groups);
    loop_free(w->loop);
    free(w);
    return 0;
}

struct answer {
    enum err_code code;
    char text[256];
};

static void keep(void *ctx, const char *json, size_t len, const struct err *err)
{
    struct answer *a = ctx;
    a->code = err->code;
    snprintf(a->text, sizeof a->text, "%.*s", json ? (int)len : -1, json ? json : err->msg);
}

static struct answer ask_all(const struct world *w, provisioner_fn fn, const char *args)
{
    struct answer a = {ERR_INTERNAL, ""};
    const struct provision p = {.ns = "ml", .who = {.name = "alice"}, .args = args};
    fn(w->provisioner.ctx, &p, keep, &a);
    return a;
}

static enum err_code ask(const struct world *w, provisioner_fn fn, const char *args)
{
    return ask_all(w, fn, args).code;
}

// The group needs the only GPU.
static struct answer create_with(const struct world *w, const char *name, const char *restarts)
{
    _cleanup_(free_p) char *args =
        xasprintf("{\"workerGroup\":{\"metadata\":{\"name\":\"%s\"},\"spec\":{%s,"
                  "\"worker\":{\"command\":[\"true\"]},\"template\":{\"spec\":{\"containers\":[{\"name\":\"worker\","
                  "\"image\":\"none\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}}},"
                  "\"lifetime\":\"Detached\"}",
                  name, restarts);
    return ask_all(w, w->provisioner.create, args);
}

static enum err_code create(const struct world *w, const char *name)
{
    return create_with(w, name, "\"restartPolicy\":\"Never\"").code;
}

static void may_open(const struct world *w, bool more)
{
    const struct rlimit limit = {more ? w->descriptors.rlim_cur : 3, w->descriptors.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// Waits for the agent that runs.
static void agent_ends(const struct world *w)
{
    siginfo_t info;
    assert_false(local_provision_idle(w->groups));
    assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
    local_provision_reap(w->groups);
}

static void a_group_that_could_not_start_starts_when_another_one_leaves(void **state)
{
    const struct world *w = *state;
    assert_int_equal(create(w, "first"), 0);
    assert_int_equal(create(w, "second"), 0);
    may_open(w, false);
    agent_ends(w); // the place is free, but the second agent cannot be started
    may_open(w, true);
    assert_true(local_provision_idle(w->groups));
    assert_int_equal(ask(w, w->provisioner.remove, "{\"group\":\"first\"}"), 0);
    agent_ends(w);
}

// A group has ended, and its next agent cannot be started for now.
static void cannot_restart(const struct world *w)
{
    assert_int_equal(create(w, "first"), 0);
    agent_ends(w);
    may_open(w, false);
    assert_int_equal(ask(w, w->provisioner.restart, "{\"group\":\"first\"}"), ERR_UNAVAILABLE);
}

static void a_group_that_could_not_start_is_tried_again(void **state)
{
    const struct world *w = *state;
    cannot_restart(w);
    may_open(w, true);
    TURN_UNTIL(loop_run_once(w->loop, 1000), !local_provision_idle(w->groups), "");
    agent_ends(w);
}

static void a_group_whose_next_attempt_cannot_start_is_tried_again(void **state)
{
    const struct world *w = *state;
    struct arena a = ARENA_INIT;
    const struct answer created = create_with(w, "first", "\"maxRestarts\":9");
    const struct json *json = json_read(created.text, strlen(created.text), &a);
    const struct local_group *g = local_provision_find(w->groups, json_str(json_get(json, "uid"), &a));
    assert_non_null(g);
    agent_ends(w);
    may_open(w, false);
    TURN_UNTIL(loop_run_once(w->loop, 1000), g->exit_code == EX_OSERR, "");
    may_open(w, true);
    TURN_UNTIL(loop_run_once(w->loop, 1000), !local_provision_idle(w->groups), "");
    agent_ends(w);
    arena_done(&a);
}

static void a_group_that_was_deleted_before_it_could_start_is_not_tried_again(void **state)
{
    const struct world *w = *state;
    cannot_restart(w);
    assert_int_equal(ask(w, w->provisioner.remove, "{\"group\":\"first\"}"), 0);
    may_open(w, true);
    assert_true(local_provision_idle(w->groups));
}

static void a_group_that_could_not_start_can_be_started_again(void **state)
{
    const struct world *w = *state;
    cannot_restart(w);
    may_open(w, true);
    assert_true(local_provision_idle(w->groups));
    assert_int_equal(ask(w, w->provisioner.restart, "{\"group\":\"first\"}"), 0);
    agent_ends(w);
}

static enum err_code restart_as(const struct world *w, const char *numbers)
{
    _cleanup_(free_p) char *args = xasprintf("{\"workerGroup\":{\"metadata\":{\"name\":\"first\"},\"spec\":{%s,"
                                             "\"worker\":{\"command\":[\"true\"]}}}}",
                                             numbers);
    return ask(w, w->provisioner.restart, args);
}

static void a_restart_keeps_the_replicas_and_their_ranks(void **state)
{
    const struct world *w = *state;
    assert_int_equal(create_with(w, "first", "\"restartPolicy\":\"Never\",\"replicas\":1,\"workersPerReplica\":4").code,
                     0);
    agent_ends(w);
    assert_int_equal(restart_as(w, "\"replicas\":4,\"workersPerReplica\":1"), ERR_INVALID);
    assert_int_equal(restart_as(w, "\"replicas\":1,\"workersPerReplica\":5"), ERR_INVALID);
    assert_int_equal(restart_as(w, "\"replicas\":1,\"workersPerReplica\":4"), 0);
    agent_ends(w);
}

static void a_new_group_that_cannot_start_is_refused(void **state)
{
    const struct world *w = *state;
    may_open(w, false);
    assert_int_equal(create(w, "first"), ERR_UNAVAILABLE);
    may_open(w, true);
    assert_int_equal(create(w, "first"), 0);
    agent_ends(w);
}

// All objects of a run are known here, so one that is not there has been deleted.
static void one_that_is_not_there_cannot_be_renewed(void **state)
{
    const struct world *w = *state;
    struct answer a = ask_all(w, w->provisioner.renew, "{\"group\":\"first\",\"uid\":\"u-1\"}");
    assert_int_equal(a.code, ERR_NOT_FOUND);
    assert_string_equal(a.text, "WorkerGroup ml/first cannot be renewed: it has been deleted");
}

// It is tried again whenever another one ends.
static void a_placementgroup_that_waits_takes_no_more_memory_with_each_try(void **state)
{
    const struct world *w = *state;
    static const char manifest[] = "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ml\"},\"spec\":{\"bundles\":[{"
                                   "\"count\":1,\"resources\":{\"nvidia.com/gpu\":\"1\"}}]}}";
    const struct draft draft = {.kind = KIND_PLACEMENTGROUP, .name = "p", .hash = "h", .detached = true};
    const struct provision p = {.ns = "ml"};
    struct local_objects all = {.loop = w->loop, .nodes = nodes_new(1, 1, 1), .gpus = true};
    struct local_object *o[2];
    struct err err = ERR_INIT;
    list_init(&all.list);
    for (int i = 0; i < 2; i++) { // there is one GPU
        o[i] = local_object_new(&all, &p, &draft);
        o[i]->uid = xasprintf("p-%d", i);
        assert_int_equal(object_decode(KIND_PLACEMENTGROUP, manifest, strlen(manifest), &o[i]->placementgroup, &err),
                         0);
        assert_int_equal(local_object_begin(o[i], &err), 0);
        assert_int_equal(o[i]->placed, i == 0);
    }
    const size_t used = o[1]->arena.used;
    for (int i = 0; i < 100; i++)
        local_objects_place_waiting(&all);
    assert_int_equal(o[1]->arena.used, used);
    local_object_delete(o[0]);
    assert_true(o[1]->placed);
    assert_string_equal(o[1]->assignment.gpus[0], "0");
    local_object_delete(o[1]);
    nodes_free(all.nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_that_could_not_start_starts_when_another_one_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_that_could_not_start_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_whose_next_attempt_cannot_start_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_that_was_deleted_before_it_could_start_is_not_tried_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_group_that_could_not_start_can_be_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_keeps_the_replicas_and_their_ranks, setup, teardown),
        cmocka_unit_test_setup_teardown(a_placementgroup_that_waits_takes_no_more_memory_with_each_try, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_new_group_that_cannot_start_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_not_there_cannot_be_renewed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
