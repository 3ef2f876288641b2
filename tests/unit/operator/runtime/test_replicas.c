// SPDX-License-Identifier: Apache-2.0
// Tests which pods count as replicas of the operator.
#include "operator/runtime/replicas.h"

#include "common/base/mem.h"
#include "operator/api/object_decode.h"
#include "operator/api/pod.h"
#include "tests/unit/support/store_gone.h"

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
static const char *names; // of the replicas
static int changes;
static char rivals[256];

static void on_change(void *ctx, const char *now)
{
    (void)ctx;
    names = now;
    changes++;
}

static void on_rival(void *ctx, const char *ns, const char *pod, const char *watches)
{
    char *text = ctx;
    size_t n = strlen(text);
    snprintf(text + n, sizeof rivals - n, "%s/%s %s;", ns, pod, watches);
}

static int start(void **state)
{
    (void)state;
    pods = store_new(KIND_POD);
    rivals[0] = '\0';
    r = replicas_new(pods, "cadre-system", "cadre-operator-b", on_change, on_rival, rivals);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    replicas_free(r);
    store_free(pods);
    return 0;
}

// Puts what the watch delivers: the pod of an operator that watches these namespaces.
static void put_watching(const char *watches, const char *name, const char *ns, const char *instance, const char *more,
                         const char *phase)
{
    char text[1024];
    const struct object *o;
    struct err err = ERR_INIT;
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%u\",%s"
             "\"labels\":{\"app.kubernetes.io/name\":\"cadre\",\"app.kubernetes.io/instance\":\"%s\","
             "\"app.kubernetes.io/component\":\"operator\",\"app.kubernetes.io/part-of\":\"cadre\",\"cadre.dev/"
             "watches\":\"%s\"}},"
             "\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"%s\"}}",
             name, ns, name, ++version, more, instance, watches, phase);
    assert_int_equal(object_decode(KIND_POD, text, strlen(text), &o, &err), 0);
    store_put(pods, o);
    object_unref(o);
}

static void put(const char *name, const char *ns, const char *instance, const char *more, const char *phase)
{
    put_watching("all.namespaces", name, ns, instance, more, phase);
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
    assert_string_equal(names, "[\"cadre-operator-a\",\"cadre-operator-b\"]");
}

static void changes_are_seen(void **state)
{
    (void)state;
    running("cadre-operator-b");
    assert_string_equal(names, "[\"cadre-operator-b\"]");
    running("cadre-operator-a");
    assert_string_equal(names, "[\"cadre-operator-a\",\"cadre-operator-b\"]");
    store_gone(pods, "cadre-system", "cadre-operator-a");
    assert_string_equal(names, "[\"cadre-operator-b\"]");
}

static void a_pod_of_a_worker_changes_nothing(void **state)
{
    (void)state;
    static const char worker[] =
        "{\"metadata\":{\"name\":\"w-0\",\"namespace\":\"cadre-system\",\"uid\":\"u-w\",\"resourceVersion\":\"1000\","
        "\"labels\":"
        "{\"app.kubernetes.io/name\":\"cadre\",\"app.kubernetes.io/instance\":\"cadre\",\"cadre.dev/group\":\"w\"}},"
        "\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"Running\"}}";
    const struct object *o;
    struct err err = ERR_INIT;
    running("cadre-operator-b");
    changes = 0;
    assert_int_equal(object_decode(KIND_POD, worker, strlen(worker), &o, &err), 0);
    store_put(pods, o);
    object_unref(o);
    store_gone(pods, "cadre-system", "w-0");
    assert_int_equal(changes, 0);
    store_gone(pods, "cadre-system", "cadre-operator-b");
    assert_int_equal(changes, 1);
    assert_null(names);
}

static void without_our_own_pod_nothing_is_known(void **state)
{
    (void)state;
    assert_null(names);
    running("cadre-operator-a");
    assert_null(names);
}

static void operators_of_other_installations_that_watch_the_same_are_told_of(void **state)
{
    (void)state;
    put_watching("ml", "cadre-operator-x", "ml", "cadre", "", "Running");
    put("cadre-operator-y", "elsewhere", "cadre", "", "Pending");
    running("cadre-operator-a");
    assert_string_equal(rivals, "");
    running("cadre-operator-b"); // our own pod
    assert_string_equal(rivals, "ml/cadre-operator-x ml;");
    put("cadre-operator-y", "elsewhere", "cadre", "", "Running");
    put("cadre-operator-y", "elsewhere", "cadre", "", "Running");
    running("cadre-operator-c");
    assert_string_equal(rivals, "ml/cadre-operator-x ml;elsewhere/cadre-operator-y all.namespaces;");
}

static void operators_that_watch_other_namespaces_are_no_rivals(void **state)
{
    (void)state;
    put_watching("team-a", "cadre-operator-b", "cadre-system", "cadre", "", "Running");
    put_watching("team-b", "cadre-operator-x", "team-b", "cadre", "", "Running");
    assert_string_equal(rivals, "");
    put_watching("team-a", "cadre-operator-y", "cadre-system", "other", "", "Running");
    assert_string_equal(rivals, "cadre-system/cadre-operator-y team-a;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_pods_with_our_labels_that_run, start, stop),
        cmocka_unit_test_setup_teardown(changes_are_seen, start, stop),
        cmocka_unit_test_setup_teardown(a_pod_of_a_worker_changes_nothing, start, stop),
        cmocka_unit_test_setup_teardown(operators_of_other_installations_that_watch_the_same_are_told_of, start, stop),
        cmocka_unit_test_setup_teardown(operators_that_watch_other_namespaces_are_no_rivals, start, stop),
        cmocka_unit_test_setup_teardown(without_our_own_pod_nothing_is_known, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
