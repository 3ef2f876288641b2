// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/agent_pod.h"

#include "tests/unit/support/store_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct store *stores[KIND_COUNT];
static struct agent_identity id;
static int64_t heartbeat_ms;
static struct err err;

static void put_group(const char *ns, const char *uid)
{
    char json[512];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"g\",\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"1\"},\"spec\":{"
             "\"replicas\":1,\"heartbeatSeconds\":7,\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":"
             "\"i\"}]}}}}",
             ns, uid);
    store_put_json(stores[KIND_WORKERGROUP], json);
}

static void put_pod(const char *ns, const char *api, const char *kind, const char *owner_uid, const char *phase)
{
    char json[768];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"p\",\"namespace\":\"%s\",\"uid\":\"u-p\",\"resourceVersion\":\"2\",\"labels\":{"
             "\"cadre.dev/group\":\"g\"},\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"g\","
             "\"uid\":\"%s\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"w\"}]},"
             "\"status\":{\"phase\":\"%s\"}}",
             ns, api, kind, owner_uid, phase);
    store_put_json(stores[KIND_POD], json);
}

static int find(const char *ns, const char *pod_uid)
{
    const struct pod_claims claims = {.ns = ns, .pod = "p", .pod_uid = pod_uid};
    err = (struct err)ERR_INIT;
    return agent_pod_find(stores[KIND_POD], stores[KIND_WORKERGROUP], &claims, &id, &heartbeat_ms, &err);
}

static int setup(void **state)
{
    (void)state;
    stores_new(stores);
    put_group("ml", "u-g");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    stores_free(stores);
    return 0;
}

static void an_agent_belongs_to_the_group_of_its_pod(void **state)
{
    (void)state;
    put_pod("ml", "cadre.dev/v1alpha1", "WorkerGroup", "u-g", "Running");
    assert_int_equal(find("ml", "u-p"), 0);
    assert_string_equal(id.group, "g");
    assert_string_equal(id.group_uid, "u-g");
    assert_string_equal(id.node, "n1");
    assert_false(id.of_placementgroup);
    assert_int_equal(heartbeat_ms, 7000);
}

static void on_bundles_it_may_speak_for_several(void **state)
{
    (void)state;
    put_pod("ml", "cadre.dev/v1alpha1", "PlacementGroup", "u-plg", "Running");
    assert_int_equal(find("ml", "u-p"), 0);
    assert_true(id.of_placementgroup);
    assert_null(id.group_uid);
    assert_int_equal(heartbeat_ms, 3000);
}

static void another_group_of_apis_may_have_kinds_of_these_names(void **state)
{
    (void)state;
    put_pod("ml", "evil.dev/v1alpha1", "WorkerGroup", "u-g", "Running");
    assert_int_equal(find("ml", "u-p"), ERR_FORBIDDEN);
    assert_non_null(strstr(err.msg, "does not belong to a WorkerGroup or PlacementGroup"));
}

// Somebody who may create pods in one namespace can write into them the UID of a group in another one.
static void a_group_of_another_namespace_has_no_pod_here(void **state)
{
    (void)state;
    put_pod("mallory", "cadre.dev/v1alpha1", "WorkerGroup", "u-g", "Running");
    assert_int_equal(find("mallory", "u-p"), ERR_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "UID u-g, which this replica does not know in its namespace"));
    put_group("mallory", "u-own"); // a group of that name changes nothing
    assert_int_equal(find("mallory", "u-p"), ERR_UNAVAILABLE);
}

static void other_pods_have_no_agent(void **state)
{
    (void)state;
    assert_int_equal(find("ml", "u-p"), ERR_UNAVAILABLE);
    put_pod("ml", "cadre.dev/v1alpha1", "WorkerGroup", "u-g", "Failed");
    assert_int_equal(find("ml", "u-p"), ERR_CONFLICT);
    assert_int_equal(find("ml", "u-former"), ERR_CONFLICT);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_agent_belongs_to_the_group_of_its_pod),
        T(on_bundles_it_may_speak_for_several),
        T(another_group_of_apis_may_have_kinds_of_these_names),
        T(a_group_of_another_namespace_has_no_pod_here),
        T(other_pods_have_no_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
