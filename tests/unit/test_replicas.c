// SPDX-License-Identifier: Apache-2.0
// Which pods count as replicas of the operator.
#include "operator/runtime/replicas.h"

#include "common/base/mem.h"
#include "operator/api/pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct store *pods;
static struct replicas *r;
static unsigned version;

static int start(void **state)
{
    (void)state;
    pods = store_new(KIND_POD);
    r = replicas_new(pods, "cadre-system", "cadre-operator-b");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    replicas_free(r);
    store_free(pods);
    return 0;
}

// What the watch brings.
static void put(const char *name, const char *ns, const char *instance, const char *more, const char *phase)
{
    char text[1024];
    const struct object *o;
    struct err err = ERR_INIT;
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%u\",%s"
             "\"labels\":{\"app.kubernetes.io/name\":\"cadre\",\"app.kubernetes.io/instance\":\"%s\","
             "\"app.kubernetes.io/component\":\"operator\",\"app.kubernetes.io/part-of\":\"cadre\"}},"
             "\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"%s\"}}",
             name, ns, name, ++version, more, instance, phase);
    assert_int_equal(object_decode(KIND_POD, text, strlen(text), &o, &err), 0);
    store_put(pods, o);
    object_unref(o);
}

static void running(const char *name)
{
    put(name, "cadre-system", "cadre", "", "Running");
}

static void all_pods_with_our_labels_that_run(void **state)
{
    (void)state;
    running("cadre-operator-b");
    running("cadre-operator-a");
    put("cadre-operator-c", "cadre-system", "cadre", "", "Pending");
    put("cadre-operator-d", "cadre-system", "cadre", "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",", "Running");
    put("cadre-operator-e", "cadre-system", "other", "", "Running");
    put("cadre-operator-f", "elsewhere", "cadre", "", "Running");
    assert_string_equal(replicas_json(r), "[\"cadre-operator-a\",\"cadre-operator-b\"]");
}

static void changes_are_seen(void **state)
{
    (void)state;
    running("cadre-operator-b");
    assert_string_equal(replicas_json(r), "[\"cadre-operator-b\"]");
    running("cadre-operator-a");
    assert_string_equal(replicas_json(r), "[\"cadre-operator-a\",\"cadre-operator-b\"]");
    store_delete(pods, "cadre-system", "cadre-operator-a");
    assert_string_equal(replicas_json(r), "[\"cadre-operator-b\"]");
}

static void without_our_own_pod_nothing_is_known(void **state)
{
    (void)state;
    assert_null(replicas_json(r));
    running("cadre-operator-a");
    assert_null(replicas_json(r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_pods_with_our_labels_that_run, start, stop),
        cmocka_unit_test_setup_teardown(changes_are_seen, start, stop),
        cmocka_unit_test_setup_teardown(without_our_own_pod_nothing_is_known, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
