// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/excluded_namespaces.h"

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

enum { FOR_EVER_MS = 3600 * 1000 };

static struct {
    struct loop *loop;
    struct store *pods;
    struct excluded_namespaces *excluded;
    unsigned version;
    char told[256];
} t;

static void on_changed(void *ctx, const char *ns, const char *pod)
{
    size_t n = strlen(t.told);
    (void)ctx;
    snprintf(t.told + n, sizeof t.told - n, "%s:%s ", ns, pod ? pod : "-");
}

static void begin(int64_t linger_ms)
{
    t.excluded = excluded_namespaces_new(t.loop, t.pods, linger_ms, on_changed, NULL);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.pods = store_new(KIND_POD);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    excluded_namespaces_free(t.excluded);
    store_free(t.pods);
    loop_free(t.loop);
    return 0;
}

static void put(const char *ns, const char *name, const char *component, const char *watches, const char *phase)
{
    char text[1024];
    const struct object *o;
    struct err err = ERR_INIT;
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"uid-%s\",\"resourceVersion\":\"%u\","
             "\"labels\":{\"app.kubernetes.io/part-of\":\"cadre\",\"app.kubernetes.io/component\":\"%s\","
             "\"cadre.dev/watches\":\"%s\"}},\"spec\":{\"containers\":[]},\"status\":{\"phase\":\"%s\"}}",
             name, ns, name, ++t.version, component, watches, phase);
    assert_int_equal(object_decode(KIND_POD, text, strlen(text), &o, &err), 0);
    store_put(t.pods, o);
    object_unref(o);
}

static void assert_told(const char *want)
{
    assert_string_equal(t.told, want);
    t.told[0] = '\0';
}

static void a_namespace_whose_own_operator_runs_is_left_to_it(void **state)
{
    (void)state;
    begin(FOR_EVER_MS);
    put("ml", "op-0", "operator", "ml", "Pending");
    assert_false(excluded_namespaces_has(t.excluded, "ml"));
    put("ml", "op-0", "operator", "ml", "Running");
    assert_true(excluded_namespaces_has(t.excluded, "ml"));
    assert_false(excluded_namespaces_has(t.excluded, "mlx"));
    put("ml", "op-1", "operator", "ml", "Running");
    assert_told("ml:op-0 ");
    excluded_namespaces_each(t.excluded, on_changed, NULL); // a listener wants to hear it again
    assert_told("ml:op-0 ");
}

static void nobody_is_kept_out_by_what_runs_elsewhere(void **state)
{
    (void)state;
    begin(FOR_EVER_MS);
    put("evil", "op-0", "operator", "ml", "Running");
    put("evil", "op-1", "operator", "all.namespaces", "Running");
    put("ml", "w-0", "worker", "ml", "Running");
    assert_false(excluded_namespaces_has(t.excluded, "ml"));
    assert_false(excluded_namespaces_has(t.excluded, "evil"));
    assert_told("");
}

static void a_restart_of_the_other_operator_is_no_end(void **state)
{
    (void)state;
    begin(FOR_EVER_MS);
    put("ml", "op-0", "operator", "ml", "Running");
    store_gone(t.pods, "ml", "op-0");
    assert_true(excluded_namespaces_has(t.excluded, "ml"));
    put("ml", "op-1", "operator", "ml", "Running");
    assert_told("ml:op-0 ");
}

static void its_end_is(void **state)
{
    (void)state;
    begin(1);
    put("ml", "op-0", "operator", "ml", "Running");
    put("ml", "op-1", "operator", "ml", "Running");
    put("ml", "op-0", "operator", "ml", "Failed");
    store_gone(t.pods, "ml", "op-0");
    assert_told("ml:op-0 ");
    store_gone(t.pods, "ml", "op-1");
    while (excluded_namespaces_has(t.excluded, "ml"))
        loop_run_once(t.loop, 1000);
    assert_told("ml:- ");
    put("ml", "op-2", "operator", "ml", "Running");
    assert_told("ml:op-2 ");
}

static void without_exclusions_no_namespace_is_excluded(void **state)
{
    (void)state;
    assert_false(excluded_namespaces_has(NULL, "ml"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_namespace_whose_own_operator_runs_is_left_to_it), T(nobody_is_kept_out_by_what_runs_elsewhere),
        T(a_restart_of_the_other_operator_is_no_end),         T(its_end_is),
        T(without_exclusions_no_namespace_is_excluded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
