// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/placementgroup.h"

#include "common/base/mem.h"
#include "operator/reconcile/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum { NOW = 1700000000 };

static const struct object *decode(const char *json)
{
    const struct object *o;
    struct err err = ERR_INIT;
    if (object_decode(KIND_PLACEMENTGROUP, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return o;
}

// The object as the API server holds it after the patch.
static const struct object *patched(const char *patch, int64_t generation)
{
    struct arena a = ARENA_INIT;
    const char *json =
        arena_printf(&a, "{\"metadata\":{\"name\":\"pool\",\"generation\":%d},%s", (int)generation, patch + 1);
    const struct object *o = decode(json);
    arena_done(&a);
    return o;
}

static void the_first_visit_answers_with_all_conditions(void **state)
{
    struct arena a = ARENA_INIT;
    (void)state;
    const struct object *o = decode("{\"metadata\":{\"name\":\"pool\",\"generation\":3}}");
    const char *patch = placementgroup_reconcile(placementgroup_of(o), NOW * 1000LL, &a);
    assert_non_null(patch);
    object_unref(o);
    o = patched(patch, 3);
    const struct placementgroup *plg = placementgroup_of(o);
    assert_int_equal(plg->observed_generation, 3);
    static const char *const types[] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY, COND_FAILED};
    assert_int_equal(plg->n_conditions, ARRAY_LEN(types));
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        const struct condition *c = condition_find(plg->conditions, plg->n_conditions, types[i]);
        assert_non_null(c);
        assert_int_equal(c->status, CONDITION_FALSE);
        assert_string_equal(c->reason, REASON_NOT_SUPPORTED);
        assert_non_null(strstr(c->message, "not supported"));
        assert_int_equal(c->observed_generation, 3);
        assert_int_equal(c->changed_ms, NOW * 1000LL);
    }
    object_unref(o);
    arena_done(&a);
}

static void the_answer_is_given_once_a_generation(void **state)
{
    struct arena a = ARENA_INIT;
    (void)state;
    const struct object *o = decode("{\"metadata\":{\"name\":\"pool\",\"generation\":3}}");
    const char *patch = placementgroup_reconcile(placementgroup_of(o), NOW * 1000LL, &a);
    object_unref(o);
    o = patched(patch, 3);
    assert_null(placementgroup_reconcile(placementgroup_of(o), NOW * 1000LL + 5000, &a));
    object_unref(o);
    o = patched(patch, 4); // somebody has edited the spec
    patch = placementgroup_reconcile(placementgroup_of(o), NOW * 1000LL + 5000, &a);
    assert_non_null(patch);
    object_unref(o);
    o = patched(patch, 4);
    const struct placementgroup *plg = placementgroup_of(o);
    assert_int_equal(plg->observed_generation, 4);
    for (size_t i = 0; i < plg->n_conditions; i++) {
        assert_int_equal(plg->conditions[i].observed_generation, 4);
        assert_int_equal(plg->conditions[i].changed_ms, NOW * 1000LL); // its status is as it was
    }
    object_unref(o);
    arena_done(&a);
}

static void an_object_that_goes_is_left_alone(void **state)
{
    struct arena a = ARENA_INIT;
    (void)state;
    const struct object *o =
        decode("{\"metadata\":{\"name\":\"pool\",\"generation\":3,\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}");
    assert_null(placementgroup_reconcile(placementgroup_of(o), NOW * 1000LL, &a));
    object_unref(o);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_visit_answers_with_all_conditions),
        cmocka_unit_test(the_answer_is_given_once_a_generation),
        cmocka_unit_test(an_object_that_goes_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
