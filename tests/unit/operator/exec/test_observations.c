// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/observations.h"

#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define POD                                                                                          \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\"},\"spec\":{\"containers\":[{\"name\":\"w\"," \
    "\"resources\":{\"requests\":{\"cpu\":\"2\",\"nvidia.com/gpu\":\"1\"}}}]}}"

static struct observations n;

static int setup(void **state)
{
    (void)state;
    observations_init(&n, 7);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    observations_done(&n);
    return 0;
}

static int passes(uint64_t hash, const char *pod)
{
    struct err err = ERR_INIT;
    return observations_dry_run_passed(&n, &(struct action){.hash = hash}, pod, strlen(pod), &err);
}

static void a_dry_run_tells_what_a_pod_needs(void **state)
{
    (void)state;
    assert_int_equal(n.memory.dry_run, DRY_RUN_NONE);
    assert_int_equal(passes(42, POD), 0);
    assert_int_equal(n.memory.dry_run, DRY_RUN_OK);
    assert_int_equal(n.memory.dry_run_hash, 42);
    assert_int_equal(resources_get(&n.memory.needs->requests, RESOURCE_GPU), 1000);
    assert_int_equal(resources_get(&n.memory.needs->requests, RESOURCE_CPU), 2000);
}

static void a_later_dry_run_takes_the_place_of_an_earlier_one(void **state)
{
    (void)state;
    char message[] = "no such thing";
    assert_int_equal(passes(42, POD), 0);
    observations_dry_run_refused(&n, 43, message);
    message[0] = 'X'; // the observations keep a copy
    assert_int_equal(n.memory.dry_run, DRY_RUN_REFUSED);
    assert_int_equal(n.memory.dry_run_hash, 43);
    assert_string_equal(n.memory.dry_run_message, "no such thing");
    assert_null(n.memory.needs);
    assert_int_equal(passes(44, POD), 0);
    assert_null(n.memory.dry_run_message);
}

static void an_answer_that_is_no_pod_is_no_verdict(void **state)
{
    (void)state;
    assert_int_equal(passes(42, POD), 0);
    assert_true(passes(43, "{\"spec\":7}") < 0);
    assert_int_equal(n.memory.dry_run, DRY_RUN_NONE);
    assert_null(n.memory.needs);
}

static const int64_t hour = 3600 * 1000;

static void a_clock_that_is_set_takes_the_waits_with_it(void **state)
{
    (void)state;
    const int64_t by[] = {-hour, hour, 24 * hour, -23 * hour};
    int64_t wall = 100 * hour, mono = 5000;
    observations_time(&n, wall, mono);
    observations_refused(&n, 1, REASON_QUOTA_EXCEEDED, "no", wall);
    n.memory.status_wanted_ms = wall - 100;
    int64_t wait_ms = n.memory.retry_at_ms - wall;
    for (size_t i = 0; i < ARRAY_LEN(by); i++) {
        wall += by[i] + 10;
        mono += 10;
        wait_ms -= 10;
        observations_time(&n, wall, mono);
        assert_int_equal(n.memory.retry_at_ms, wall + wait_ms);
        assert_int_equal(n.memory.status_wanted_ms, wall - 100 - 10 * (int64_t)(i + 1));
        assert_int_equal(n.memory.looked_ms, wall - 10);
    }
}

static void a_clock_that_is_set_makes_no_wait_where_there_is_none(void **state)
{
    (void)state;
    observations_time(&n, 5000, 70);
    assert_int_equal(n.memory.looked_ms, 0);
    observations_time(&n, 1000, 70);
    assert_int_equal(n.memory.retry_at_ms, 0);
    assert_int_equal(n.memory.status_wanted_ms, 0);
    assert_int_equal(n.memory.waits[WAIT_BIND].since_ms, 0);
}

static void a_wait_that_was_noted_as_the_clock_was_set_is_no_longer_than_any(void **state)
{
    (void)state;
    observations_time(&n, hour, 70);
    observations_refused(&n, 1, REASON_QUOTA_EXCEEDED, "no", 2 * hour); // by the new clock
    observations_time(&n, 2 * hour, 71);
    assert_in_range(n.memory.retry_at_ms, 2 * hour, 2 * hour + 66 * 1000);
}

// A decision waits for pods that were created at `began_ms`, by the clock of the API server. Returns how long it still
// waits.
static int64_t wait_for_binding(int64_t wall, int64_t mono, int64_t began_ms)
{
    struct arena a = ARENA_INIT;
    struct plan p;
    plan_init(&p, &a);
    observations_time(&n, wall, mono);
    int64_t left = wait_left(&n.memory, &p, WAIT_BIND, 1, began_ms, 300 * 1000, wall);
    observations_planned(&n, &p, 1000);
    arena_done(&a);
    return left;
}

static void waits_for_nothing(int64_t wall, int64_t mono)
{
    struct arena a = ARENA_INIT;
    struct plan p;
    plan_init(&p, &a);
    observations_time(&n, wall, mono);
    observations_planned(&n, &p, 1000);
    arena_done(&a);
}

static void a_wait_does_not_depend_on_how_far_apart_clocks_are(void **state)
{
    (void)state;
    const int64_t ahead[] = {0, -hour, hour}; // our clock minus the API server's
    int64_t mono = 70;
    for (size_t i = 0; i < ARRAY_LEN(ahead); i++) {
        int64_t made = 100 * hour, wall = made + ahead[i];
        waits_for_nothing(wall, mono); // the decision that creates the pods
        assert_in_range(wait_for_binding(wall + 1000, mono + 1000, made), 299 * 1000, 300 * 1000);
        assert_in_range(wait_for_binding(wall + 200 * 1000, mono + 200 * 1000, made), 100 * 1000, 101 * 1000);
        assert_true(wait_for_binding(wall + 301 * 1000, mono + 301 * 1000, made) <= 0);
        mono += hour;
    }
}

static void a_wait_does_not_end_when_somebody_sets_the_clock(void **state)
{
    (void)state;
    int64_t made = 100 * hour;
    waits_for_nothing(made, 70);
    wait_for_binding(made + 1000, 1070, made);
    assert_in_range(wait_for_binding(made + hour, 2070, made), 298 * 1000, 299 * 1000);
    assert_in_range(wait_for_binding(made - hour, 3070, made), 297 * 1000, 298 * 1000);
}

static void a_process_that_did_not_see_the_beginning_believes_the_stamp(void **state)
{
    (void)state;
    int64_t made = 100 * hour;
    assert_int_equal(wait_for_binding(made + 100 * 1000, 70, made), 200 * 1000);
    waits_for_nothing(made + 101 * 1000, 1070); // then it waits no more
    assert_in_range(wait_for_binding(made + 102 * 1000, 2070, made + 102 * 1000), 299 * 1000, 300 * 1000);
}

static void of_a_gang_s_refusals_the_first_is_kept(void **state)
{
    (void)state;
    observations_refused(&n, 3, REASON_QUOTA_EXCEEDED, "first", 1000);
    int64_t retry_at_ms = n.memory.retry_at_ms;
    observations_refused(&n, 3, REASON_FORBIDDEN, "second", 1001);
    assert_string_equal(n.memory.refusal_reason, REASON_QUOTA_EXCEEDED);
    assert_string_equal(n.memory.refusal_message, "first");
    assert_int_equal(n.memory.refusal_incarnation, 3);
    assert_int_equal(n.memory.retry_at_ms, retry_at_ms);
    assert_int_equal(n.memory.given_back, 1);
}

static void a_refusal_of_the_next_incarnation_is_news(void **state)
{
    (void)state;
    observations_refused(&n, 3, REASON_QUOTA_EXCEEDED, "first", 1000);
    observations_refused(&n, 4, REASON_FORBIDDEN, "second", 1001);
    assert_string_equal(n.memory.refusal_reason, REASON_FORBIDDEN);
    assert_string_equal(n.memory.refusal_message, "second");
    assert_int_equal(n.memory.given_back, 2);
}

static void waits_grow_up_to_a_minute(void **state)
{
    (void)state;
    int64_t now_ms = 1000, before = 0;
    for (int32_t i = 0; i < 12; i++) {
        observations_refused(&n, i, REASON_QUOTA_EXCEEDED, "full", now_ms);
        int64_t wait = n.memory.retry_at_ms - now_ms;
        assert_true(wait >= 1000 && wait <= 66 * 1000);
        assert_true(wait > before || wait >= 60 * 1000);
        before = wait;
        now_ms = n.memory.retry_at_ms;
    }
    assert_true(before >= 60 * 1000);
}

static void a_gang_given_back_avoids_the_nodes_that_did_not_take_it(void **state)
{
    (void)state;
    char node[] = "n1";
    const char *contended[] = {node, "n2"};
    const struct plan p = {.gives_back = true, .contended = contended, .n_contended = 2};
    observations_planned(&n, &p, 1000);
    node[1] = '9'; // the observations keep a copy
    assert_int_equal(n.memory.n_contended, 2);
    assert_string_equal(n.memory.contended[0], "n1");
    assert_true(n.memory.retry_at_ms >= 2000);
}

static void giving_back_after_a_refusal_does_not_wait_twice(void **state)
{
    (void)state;
    const struct plan p = {.gives_back = true};
    observations_refused(&n, 0, REASON_QUOTA_EXCEEDED, "full", 1000);
    int64_t retry_at_ms = n.memory.retry_at_ms;
    observations_planned(&n, &p, 1001);
    assert_int_equal(n.memory.retry_at_ms, retry_at_ms);
    assert_int_equal(n.memory.given_back, 1);
}

static void a_bound_gang_forgets_the_trouble_but_not_what_it_needs(void **state)
{
    (void)state;
    const char *contended[] = {"n1"};
    const struct plan p = {.gives_back = true, .contended = contended, .n_contended = 1};
    assert_int_equal(passes(42, POD), 0);
    observations_refused(&n, 0, REASON_QUOTA_EXCEEDED, "full", 1000);
    observations_planned(&n, &p, 1001);
    observations_bound(&n);
    assert_null(n.memory.refusal_reason);
    assert_null(n.memory.refusal_message);
    assert_int_equal(n.memory.given_back, 0);
    assert_int_equal(n.memory.retry_at_ms, 0);
    assert_int_equal(n.memory.n_contended, 0);
    assert_int_equal(n.memory.dry_run, DRY_RUN_OK);
    observations_refused(&n, 5, REASON_QUOTA_EXCEEDED, "again", 1000);
    assert_true(n.memory.retry_at_ms <= 1000 + 1100); // as after the first failure
}

static void a_spec_that_is_forbidden_while_the_one_before_runs_is_tried_ever_more_slowly(void **state)
{
    (void)state;
    observations_dry_run_forbidden(&n, 42, 0, REASON_FORBIDDEN, "violates a policy", 1000);
    assert_int_equal(n.memory.dry_run, DRY_RUN_NONE);
    assert_int_equal(n.memory.dry_run_hash, 42);
    int64_t first_wait = n.memory.retry_at_ms - 1000;
    observations_bound(&n);
    assert_string_equal(n.memory.refusal_message, "violates a policy");
    observations_dry_run_forbidden(&n, 42, 0, REASON_FORBIDDEN, "violates a policy", 10000);
    assert_true(n.memory.retry_at_ms - 10000 > first_wait);
}

static void a_service_that_is_refused_while_the_gang_runs_is_tried_ever_more_slowly(void **state)
{
    (void)state;
    struct action service = {.kind = ACTION_CREATE_SERVICE};
    const struct plan waits = {0}, tries = {.actions = &service, .n = 1};
    int64_t now = 1000, waited = 0;
    assert_int_equal(passes(42, POD), 0);
    assert_false(observations_calm(&n, &waits, now));
    for (int i = 0; i < 3; i++) {
        observations_refused(&n, 0, REASON_NAME_CONFLICT, "taken", now);
        assert_true(n.memory.retry_at_ms - now > waited);
        waited = n.memory.retry_at_ms - now;
        assert_false(observations_calm(&n, &waits, n.memory.retry_at_ms - 1));
        now = n.memory.retry_at_ms;
        assert_false(observations_calm(&n, &tries, now));
    }
    assert_true(observations_calm(&n, &waits, now)); // there is a Service, so nothing is tried
}

static void what_becomes_ready_and_fails_again_waits_longer_each_time(void **state)
{
    (void)state;
    const struct plan p = {.gives_back = true};
    observations_planned(&n, &p, 1000);
    observations_ready(&n, 5000, 8000);
    assert_int_equal(n.memory.retry_at_ms, 0);
    observations_planned(&n, &p, 9000);
    assert_int_equal(n.memory.given_back, 2);
    observations_ready(&n, 12000, 12000 + 600 * 1000); // it is Ready for ten minutes
    observations_planned(&n, &p, 700 * 1000);
    assert_int_equal(n.memory.given_back, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_dry_run_tells_what_a_pod_needs),
        T(a_later_dry_run_takes_the_place_of_an_earlier_one),
        T(an_answer_that_is_no_pod_is_no_verdict),
        T(a_clock_that_is_set_takes_the_waits_with_it),
        T(a_clock_that_is_set_makes_no_wait_where_there_is_none),
        T(a_wait_that_was_noted_as_the_clock_was_set_is_no_longer_than_any),
        T(a_wait_does_not_depend_on_how_far_apart_clocks_are),
        T(a_wait_does_not_end_when_somebody_sets_the_clock),
        T(a_process_that_did_not_see_the_beginning_believes_the_stamp),
        T(of_a_gang_s_refusals_the_first_is_kept),
        T(a_refusal_of_the_next_incarnation_is_news),
        T(waits_grow_up_to_a_minute),
        T(a_gang_given_back_avoids_the_nodes_that_did_not_take_it),
        T(giving_back_after_a_refusal_does_not_wait_twice),
        T(a_bound_gang_forgets_the_trouble_but_not_what_it_needs),
        T(a_spec_that_is_forbidden_while_the_one_before_runs_is_tried_ever_more_slowly),
        T(a_service_that_is_refused_while_the_gang_runs_is_tried_ever_more_slowly),
        T(what_becomes_ready_and_fails_again_waits_longer_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
