// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/notebook.h"

#include "operator/reconcile/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define POD                                                                                          \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ml\"},\"spec\":{\"containers\":[{\"name\":\"w\"," \
    "\"resources\":{\"requests\":{\"cpu\":\"2\",\"nvidia.com/gpu\":\"1\"}}}]}}"

static struct notebook n;

static int setup(void **state)
{
    (void)state;
    notebook_init(&n, 7);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    notebook_done(&n);
    return 0;
}

static void a_dry_run_tells_what_a_pod_needs(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(n.memory.dry_run, DRY_RUN_NONE);
    assert_int_equal(notebook_dry_run_ok(&n, 42, POD, strlen(POD), &err), 0);
    assert_int_equal(n.memory.dry_run, DRY_RUN_OK);
    assert_int_equal(n.memory.dry_run_hash, 42);
    assert_int_equal(resources_get(&n.memory.needs->requests, RESOURCE_GPU), 1000);
    assert_int_equal(resources_get(&n.memory.needs->requests, RESOURCE_CPU), 2000);
}

static void a_later_dry_run_takes_the_place_of_an_earlier_one(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char message[] = "no such thing";
    assert_int_equal(notebook_dry_run_ok(&n, 42, POD, strlen(POD), &err), 0);
    notebook_dry_run_refused(&n, 43, message);
    message[0] = 'X'; // the notebook keeps a copy
    assert_int_equal(n.memory.dry_run, DRY_RUN_REFUSED);
    assert_int_equal(n.memory.dry_run_hash, 43);
    assert_string_equal(n.memory.dry_run_message, "no such thing");
    assert_null(n.memory.needs);
    assert_int_equal(notebook_dry_run_ok(&n, 44, POD, strlen(POD), &err), 0);
    assert_null(n.memory.dry_run_message);
}

static void an_answer_that_is_no_pod_is_no_verdict(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(notebook_dry_run_ok(&n, 42, POD, strlen(POD), &err), 0);
    assert_true(notebook_dry_run_ok(&n, 43, "{\"spec\":7}", 10, &err) < 0);
    assert_int_equal(n.memory.dry_run, DRY_RUN_NONE);
    assert_null(n.memory.needs);
}

static void a_clock_that_is_set_back_prolongs_no_wait_by_hours(void **state)
{
    (void)state;
    int64_t hour = 3600 * 1000, now = 10 * hour;
    notebook_time(&n, now);
    notebook_refused(&n, 1, REASON_QUOTA_EXCEEDED, "no", now);
    n.memory.status_wanted_ms = now - 100;
    int64_t wait_ms = n.memory.retry_at_ms - now;
    notebook_time(&n, now + 10); // forward: as it should
    assert_int_equal(n.memory.retry_at_ms, now + wait_ms);
    now -= hour;
    notebook_time(&n, now);
    assert_int_equal(n.memory.retry_at_ms, now + wait_ms - 10);
    assert_int_equal(n.memory.status_wanted_ms, now - 110);
    notebook_time(&n, now);
    assert_int_equal(n.memory.retry_at_ms, now + wait_ms - 10);
}

static void a_clock_that_is_set_back_makes_no_wait_where_there_is_none(void **state)
{
    (void)state;
    notebook_time(&n, 5000);
    notebook_time(&n, 1000);
    assert_int_equal(n.memory.retry_at_ms, 0);
    assert_int_equal(n.memory.status_wanted_ms, 0);
}

static void of_a_gang_s_refusals_the_first_is_kept(void **state)
{
    (void)state;
    notebook_refused(&n, 3, REASON_QUOTA_EXCEEDED, "first", 1000);
    int64_t retry_at_ms = n.memory.retry_at_ms;
    notebook_refused(&n, 3, REASON_FORBIDDEN, "second", 1001);
    assert_string_equal(n.memory.refusal_reason, REASON_QUOTA_EXCEEDED);
    assert_string_equal(n.memory.refusal_message, "first");
    assert_int_equal(n.memory.refusal_incarnation, 3);
    assert_int_equal(n.memory.retry_at_ms, retry_at_ms);
    assert_int_equal(n.memory.rollbacks, 1);
}

static void a_refusal_of_the_next_incarnation_is_news(void **state)
{
    (void)state;
    notebook_refused(&n, 3, REASON_QUOTA_EXCEEDED, "first", 1000);
    notebook_refused(&n, 4, REASON_FORBIDDEN, "second", 1001);
    assert_string_equal(n.memory.refusal_reason, REASON_FORBIDDEN);
    assert_string_equal(n.memory.refusal_message, "second");
    assert_int_equal(n.memory.rollbacks, 2);
}

static void waits_grow_up_to_a_minute(void **state)
{
    (void)state;
    int64_t now_ms = 1000, before = 0;
    for (int32_t i = 0; i < 12; i++) {
        notebook_refused(&n, i, REASON_QUOTA_EXCEEDED, "full", now_ms);
        int64_t wait = n.memory.retry_at_ms - now_ms;
        assert_true(wait >= 1000 && wait <= 66 * 1000);
        assert_true(wait > before || wait >= 60 * 1000);
        before = wait;
        now_ms = n.memory.retry_at_ms;
    }
    assert_true(before >= 60 * 1000);
}

static void a_gang_given_back_shuns_the_nodes_that_did_not_take_it(void **state)
{
    (void)state;
    char node[] = "n1";
    const char *contended[] = {node, "n2"};
    const struct plan p = {.rolls_back = true, .contended = contended, .n_contended = 2};
    notebook_rolled_back(&n, &p, 1000);
    node[1] = '9'; // the notebook keeps a copy
    assert_int_equal(n.memory.n_contended, 2);
    assert_string_equal(n.memory.contended[0], "n1");
    assert_true(n.memory.retry_at_ms >= 2000);
}

static void giving_back_after_a_refusal_does_not_wait_twice(void **state)
{
    (void)state;
    const struct plan p = {.rolls_back = true};
    notebook_refused(&n, 0, REASON_QUOTA_EXCEEDED, "full", 1000);
    int64_t retry_at_ms = n.memory.retry_at_ms;
    notebook_rolled_back(&n, &p, 1001);
    assert_int_equal(n.memory.retry_at_ms, retry_at_ms);
    assert_int_equal(n.memory.rollbacks, 1);
}

static void a_bound_gang_forgets_the_trouble_but_not_what_it_needs(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    const char *contended[] = {"n1"};
    const struct plan p = {.rolls_back = true, .contended = contended, .n_contended = 1};
    assert_int_equal(notebook_dry_run_ok(&n, 42, POD, strlen(POD), &err), 0);
    notebook_refused(&n, 0, REASON_QUOTA_EXCEEDED, "full", 1000);
    notebook_rolled_back(&n, &p, 1001);
    notebook_bound(&n);
    assert_null(n.memory.refusal_reason);
    assert_null(n.memory.refusal_message);
    assert_int_equal(n.memory.rollbacks, 0);
    assert_int_equal(n.memory.retry_at_ms, 0);
    assert_int_equal(n.memory.n_contended, 0);
    assert_int_equal(n.memory.dry_run, DRY_RUN_OK);
    notebook_refused(&n, 5, REASON_QUOTA_EXCEEDED, "again", 1000);
    assert_true(n.memory.retry_at_ms <= 1000 + 1100); // as at the first time
}

static void a_spec_that_is_forbidden_while_the_one_before_runs_is_tried_ever_more_slowly(void **state)
{
    (void)state;
    notebook_dry_run_forbidden(&n, 42, 0, REASON_FORBIDDEN, "violates a policy", 1000);
    assert_int_equal(n.memory.dry_run, DRY_RUN_NONE);
    assert_int_equal(n.memory.dry_run_hash, 42);
    int64_t first_wait = n.memory.retry_at_ms - 1000;
    notebook_bound(&n);
    assert_string_equal(n.memory.refusal_message, "violates a policy");
    notebook_dry_run_forbidden(&n, 42, 0, REASON_FORBIDDEN, "violates a policy", 10000);
    assert_true(n.memory.retry_at_ms - 10000 > first_wait);
}

static void what_becomes_ready_and_fails_again_waits_longer_each_time(void **state)
{
    (void)state;
    const struct plan p = {.rolls_back = true};
    notebook_rolled_back(&n, &p, 1000);
    notebook_ready(&n, 5000, 8000);
    assert_int_equal(n.memory.retry_at_ms, 0);
    notebook_rolled_back(&n, &p, 9000);
    assert_int_equal(n.memory.rollbacks, 2);
    notebook_ready(&n, 12000, 12000 + 600 * 1000); // for ten minutes
    notebook_rolled_back(&n, &p, 700 * 1000);
    assert_int_equal(n.memory.rollbacks, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_dry_run_tells_what_a_pod_needs),
        T(a_later_dry_run_takes_the_place_of_an_earlier_one),
        T(an_answer_that_is_no_pod_is_no_verdict),
        T(a_clock_that_is_set_back_prolongs_no_wait_by_hours),
        T(a_clock_that_is_set_back_makes_no_wait_where_there_is_none),
        T(of_a_gang_s_refusals_the_first_is_kept),
        T(a_refusal_of_the_next_incarnation_is_news),
        T(waits_grow_up_to_a_minute),
        T(a_gang_given_back_shuns_the_nodes_that_did_not_take_it),
        T(giving_back_after_a_refusal_does_not_wait_twice),
        T(a_bound_gang_forgets_the_trouble_but_not_what_it_needs),
        T(a_spec_that_is_forbidden_while_the_one_before_runs_is_tried_ever_more_slowly),
        T(what_becomes_ready_and_fails_again_waits_longer_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
