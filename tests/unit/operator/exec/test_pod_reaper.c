// SPDX-License-Identifier: Apache-2.0
// Pods with a deleted owner.
#include "operator/exec/pod_reaper.h"

#include "tests/unit/support/store_gone.h"
#include "tests/unit/support/store_json.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct store *stores[KIND_COUNT];
    struct pod_reaper *reaper;
} t;

static void put_pod_as(const char *name, const char *version, const char *owner, const char *more)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"u-%s\",\"resourceVersion\":\"%s\"%s,"
             "\"labels\":{\"cadre.dev/group\":\"g\"},"
             "\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"name\":\"g\","
             "\"uid\":\"%s\",\"controller\":true}]},\"spec\":{\"containers\":[{\"name\":\"w\"}]}}",
             name, name, version, more, owner);
    store_put_json(t.stores[KIND_POD], json);
}

static void put_pod(const char *name, const char *owner, const char *more)
{
    put_pod_as(name, "7", owner, more);
}

static int setup(void **state)
{
    (void)state;
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    stores_new(t.stores);
    t.reaper = pod_reaper_new(t.client, t.stores);
    store_put_json(t.stores[KIND_WORKERGROUP],
                   "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":\"u-g\",\"resourceVersion\":\"1\"},"
                   "\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":\"i\"}]}}}}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pod_reaper_stop(t.reaper);
    stub_client_cancel(t.client);
    pod_reaper_free(t.reaper);
    stores_free(t.stores);
    stub_client_free(t.client);
    loop_free(t.loop);
    return 0;
}

static void pods_go_with_their_owner(void **state)
{
    (void)state;
    pod_reaper_start(t.reaper);
    put_pod("g-0-0", "u-g", "");
    put_pod("other", "u-other", "");
    put_pod("g-1-0", "u-g", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    struct stub_call *call = stub_next(t.client);
    assert_non_null(call);
    assert_int_equal(call->request.verb, VERB_DELETE);
    assert_string_equal(call->request.name, "g-0-0");
    assert_string_equal(call->request.uid, "u-g-0-0");
    assert_int_equal(call->request.grace_s, -1);
    assert_false(pod_reaper_idle(t.reaper));
    stub_answer(call, 200, "{}");
    assert_true(stub_quiet(t.client));
    assert_true(pod_reaper_idle(t.reaper));
}

// Somebody removed the owner from the pod before the object was deleted (kubectl delete --cascade=orphan). We see that
// later.
static void only_a_pod_that_is_as_it_was_seen_goes(void **state)
{
    (void)state;
    pod_reaper_start(t.reaper);
    put_pod("g-0-0", "u-g", "");
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    struct stub_call *call = stub_next(t.client);
    assert_string_equal(call->request.resource_version, "7");
    stub_fail(call, ERR_CONFLICT, "it has changed");
    assert_true(stub_quiet(t.client));
}

static void only_the_leader_deletes(void **state)
{
    (void)state;
    put_pod("g-0-0", "u-g", "");
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    assert_true(stub_quiet(t.client));
}

static void many_pods_go_a_few_at_a_time(void **state)
{
    (void)state;
    char name[32];
    pod_reaper_start(t.reaper);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "g-%d-0", i);
        put_pod(name, "u-g", "");
    }
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    assert_int_equal(stub_waiting(t.client), 32);
    for (int i = 0; i < 60; i++)
        stub_answer(stub_next(t.client), 200, "{}");
    assert_int_equal(stub_waiting(t.client), 32);
    pod_reaper_stop(t.reaper); // the operator ends: no further deletions begin
    for (int i = 0; i < 32; i++)
        stub_answer(stub_next(t.client), 200, "{}");
    assert_true(stub_quiet(t.client));
    assert_true(pod_reaper_idle(t.reaper));
}

// The garbage collector works at the same time: it may have come first, or the pod changed while it waited for its
// turn.
static void those_that_wait_go_as_they_are_by_then(void **state)
{
    (void)state;
    enum { AT_ONCE = 32 };
    char name[32];
    pod_reaper_start(t.reaper);
    for (int i = 0; i < AT_ONCE; i++) {
        snprintf(name, sizeof name, "first-%d", i);
        put_pod(name, "u-g", "");
    }
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    store_put_json(t.stores[KIND_WORKERGROUP],
                   "{\"metadata\":{\"name\":\"h\",\"namespace\":\"ml\",\"uid\":\"u-h\",\"resourceVersion\":\"1\"},"
                   "\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":\"i\"}]}}}}");
    put_pod("gone", "u-h", "");
    put_pod("going", "u-h", "");
    put_pod("kept", "u-h", "");
    put_pod("left", "u-h", "");
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "h");
    store_gone(t.stores[KIND_POD], "ml", "gone");
    put_pod_as("going", "8", "u-h", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    put_pod_as("kept", "8", "u-other", "");
    put_pod_as("left", "8", "u-h", "");
    for (int i = 0; i < AT_ONCE; i++)
        stub_answer(stub_next(t.client), 200, "{}");
    struct stub_call *call = stub_next(t.client);
    assert_string_equal(call->request.name, "left");
    assert_string_equal(call->request.resource_version, "8");
    stub_answer(call, 200, "{}");
    assert_true(stub_quiet(t.client));
    assert_true(pod_reaper_idle(t.reaper));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pods_go_with_their_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_pod_that_is_as_it_was_seen_goes, setup, teardown),
        cmocka_unit_test_setup_teardown(only_the_leader_deletes, setup, teardown),
        cmocka_unit_test_setup_teardown(those_that_wait_go_as_they_are_by_then, setup, teardown),
        cmocka_unit_test_setup_teardown(many_pods_go_a_few_at_a_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
