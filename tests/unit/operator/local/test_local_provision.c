// SPDX-License-Identifier: Apache-2.0
// Groups of a local run whose agent ends at once, and cannot be started while the process has no more descriptors.
#include "operator/local/local_provision.h"

#include "common/base/mem.h"
#include "operator/local/trust.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

static void keep_code(void *ctx, const char *json, size_t len, const struct err *err)
{
    (void)json, (void)len;
    *(enum err_code *)ctx = err->code;
}

static enum err_code ask(const struct world *w, provisioner_fn fn, const char *args)
{
    enum err_code code = ERR_INTERNAL;
    const struct provision p = {.ns = "ml", .who = {.name = "alice"}, .args = args};
    fn(w->provisioner.ctx, &p, keep_code, &code);
    return code;
}

// The group needs the only GPU.
static enum err_code create(const struct world *w, const char *name)
{
    _cleanup_(free_p) char *args =
        xasprintf("{\"workerGroup\":{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"restartPolicy\":\"Never\","
                  "\"worker\":{\"command\":[\"true\"]},\"template\":{\"spec\":{\"containers\":[{\"name\":\"worker\","
                  "\"image\":\"none\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}}},"
                  "\"lifetime\":\"Detached\"}",
                  name);
    return ask(w, w->provisioner.create, args);
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

static void a_group_that_could_not_start_can_be_started_again(void **state)
{
    const struct world *w = *state;
    assert_int_equal(create(w, "first"), 0);
    agent_ends(w);
    may_open(w, false);
    assert_int_equal(ask(w, w->provisioner.restart, "{\"group\":\"first\"}"), ERR_UNAVAILABLE);
    may_open(w, true);
    assert_true(local_provision_idle(w->groups));
    assert_int_equal(ask(w, w->provisioner.restart, "{\"group\":\"first\"}"), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_that_could_not_start_starts_when_another_one_leaves, setup, teardown),
        cmocka_unit_test_setup_teardown(a_group_that_could_not_start_can_be_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_new_group_that_cannot_start_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
