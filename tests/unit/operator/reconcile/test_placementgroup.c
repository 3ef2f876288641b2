// SPDX-License-Identifier: Apache-2.0
// Rules for every PlacementGroup, whatever its case. The cases are in tests/golden/plan.
#include "operator/reconcile/placementgroup_reconcile.h"

#include "tests/unit/support/group_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

// The hash of the first dry run that the PlacementGroup asks for; 0 = it asks for none.
static uint64_t hash_of(const char *spec)
{
    struct arena a = ARENA_INIT;
    struct group_case *c =
        group_case_new(arena_printf(&a, "{\"placementgroup\": {\"metadata\": {\"name\": \"p\"}, \"spec\": %s}}", spec));
    const struct plan *p = group_case_decide(c);
    size_t i = 0;
    while (i < p->n && p->actions[i].kind != ACTION_DRY_RUN)
        i++;
    uint64_t hash = i < p->n ? p->actions[i].hash : 0;
    group_case_free(c);
    arena_done(&a);
    return hash;
}

static void quantities_that_mean_the_same_are_the_same(void **state)
{
    (void)state;
    uint64_t one = hash_of("{\"bundles\": [{\"resources\": {\"cpu\": \"1\", \"memory\": \"1Gi\"}}]}");
    assert_int_equal(one, hash_of("{\"bundles\": [{\"resources\": {\"memory\": \"1024Mi\", \"cpu\": 1}}]}"));
    assert_int_not_equal(one, hash_of("{\"bundles\": [{\"resources\": {\"cpu\": \"2\", \"memory\": \"1Gi\"}}]}"));
}

// If a further shape comes, the first shape is not tried again. The further shape has its own dry run.
static void more_bundles_need_no_new_dry_run(void **state)
{
    (void)state;
    assert_int_equal(
        hash_of("{\"bundles\": [{\"resources\": {\"cpu\": 1}}]}"),
        hash_of("{\"bundles\": [{\"resources\": {\"cpu\": 1}, \"count\": 3}, {\"resources\": {\"cpu\": 2}}]}"));
}

static void an_object_that_goes_is_left_alone(void **state)
{
    (void)state;
    struct group_case *c = group_case_new(
        "{\"placementgroup\": {\"metadata\": {\"name\": \"p\", \"generation\": 3, \"deletionTimestamp\": "
        "\"2026-01-01T00:00:00Z\"}, \"spec\": {\"bundles\": [{\"resources\": {\"cpu\": 1}}]}}}");
    assert_int_equal(group_case_decide(c)->n, 0);
    group_case_free(c);
}

// The leader's view lags behind its predecessor's last writes. The wait for kube-scheduler goes on meanwhile.
static void a_decision_from_an_old_view_is_postponed_and_keeps_its_waits(void **state)
{
    (void)state;
    struct group_case *c =
        group_case_new("{\"now\": \"2026-01-01T00:01:00Z\", \"placementgroup\": {\"like\": \"placement-group\"}, "
                       "\"pods\": [{\"like\": "
                       "\"bundle-pod 0 n1 0-3\", \"metadata\": {\"name\": \"pool-plg-0-1\", \"creationTimestamp\": "
                       "\"2026-01-01T00:00:55Z\", \"labels\": {\"cadre.dev/incarnation\": \"1\"}}}]}");
    c->memory.waits[WAIT_BIND] = (struct wait){.token = 1, .since_ms = 5};
    const struct plan *p = group_case_decide(c);
    assert_int_equal(p->n, 0);
    assert_int_equal(p->requeue_ms, 1000);
    assert_int_equal(p->waits[WAIT_BIND].since_ms, 5);
    assert_true(p->waits[WAIT_STATUS].token);
    group_case_free(c);
}

static void too_many_bundles_are_refused(void **state)
{
    (void)state;
    assert_int_equal(
        hash_of("{\"bundles\": [{\"resources\": {\"cpu\": 1}, \"count\": 10000}, {\"resources\": {\"cpu\": "
                "1}}]}"),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantities_that_mean_the_same_are_the_same),
        cmocka_unit_test(more_bundles_need_no_new_dry_run),
        cmocka_unit_test(an_object_that_goes_is_left_alone),
        cmocka_unit_test(a_decision_from_an_old_view_is_postponed_and_keeps_its_waits),
        cmocka_unit_test(too_many_bundles_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
