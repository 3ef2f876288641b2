// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/controller.h"

#include "common/base/err.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The test records the runs of reconcile(). They finish at once with `answer`, or when the test says so.
static struct {
    struct loop *loop;
    struct metrics *metrics;
    struct controller *controller;
    char trace[256]; // keys in the order in which they were given out
    bool at_once;
    struct reconcile_result answer;
    int running, most_running, runs;
} t;

static void finish(const char *key, struct reconcile_result result)
{
    t.running--;
    controller_finish(t.controller, key, result);
}

static void reconcile(void *ctx, const char *key)
{
    (void)ctx;
    size_t used = strlen(t.trace);
    snprintf(t.trace + used, sizeof t.trace - used, "%s ", key);
    t.runs++;
    t.running++;
    t.most_running = MAX(t.most_running, t.running);
    if (t.at_once)
        finish(key, t.answer);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.metrics = metrics_new();
    t.controller = controller_new(
        t.loop, &(struct controller_options){
                    .name = "workergroup", .max_concurrent = 3, .reconcile = reconcile, .metrics = t.metrics});
    t.answer.requeue_ms = -1;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    controller_free(t.controller);
    metrics_free(t.metrics);
    loop_free(t.loop);
    return 0;
}

static void turn(void)
{
    loop_run_once(t.loop, 1);
}

static double metric(const char *line)
{
    struct buf b = BUF_INIT(1 << 20);
    metrics_write(t.metrics, &b);
    const char *at = strstr(buf_str(&b), line);
    double v = at ? strtod(at + strlen(line), NULL) : -1;
    buf_done(&b);
    return v;
}

static void keys_wait_for_the_start(void **state)
{
    (void)state;
    t.at_once = true;
    controller_add(t.controller, "a");
    turn();
    assert_string_equal(t.trace, "");
    controller_start(t.controller);
    assert_string_equal(t.trace, ""); // not inside the caller
    loop_run(t.loop);                 // returns, because nothing can wake it
    assert_string_equal(t.trace, "a ");
}

static void many_keys_run_at_once_but_not_more_than_allowed(void **state)
{
    (void)state;
    controller_start(t.controller);
    for (const char *const *k = (const char *const[]){"a", "b", "c", "d", "e", NULL}; *k; k++)
        controller_add(t.controller, *k);
    turn();
    turn();
    assert_string_equal(t.trace, "a b c ");
    finish("b", (struct reconcile_result){.requeue_ms = -1});
    turn();
    assert_string_equal(t.trace, "a b c d ");
    assert_int_equal(t.most_running, 3);
    assert_false(controller_idle(t.controller));
}

static void a_key_never_runs_twice_at_a_time(void **state)
{
    (void)state;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    turn();
    controller_add(t.controller, "a");
    turn();
    turn();
    assert_string_equal(t.trace, "a ");
    finish("a", (struct reconcile_result){.requeue_ms = -1});
    turn();
    assert_string_equal(t.trace, "a a ");
    finish("a", (struct reconcile_result){.requeue_ms = -1});
    assert_true(controller_idle(t.controller));
    loop_run(t.loop);
    assert_string_equal(t.trace, "a a ");
}

static void an_error_comes_back_after_a_backoff_until_it_succeeds(void **state)
{
    (void)state;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    for (int i = 0; i < 4; i++) {
        while (!t.running)
            turn();
        finish("a", (struct reconcile_result){.code = ERR_IO, .requeue_ms = 100000}); // the code decides
    }
    while (!t.running)
        turn();
    finish("a", (struct reconcile_result){.requeue_ms = -1});
    loop_run(t.loop);
    assert_int_equal(t.runs, 5);
    assert_true(metric("controller_runtime_reconcile_errors_total{controller=\"workergroup\"}") == 4);
    assert_true(metric("controller_runtime_reconcile_total{controller=\"workergroup\",result=\"error\"}") == 4);
    assert_true(metric("controller_runtime_reconcile_total{controller=\"workergroup\",result=\"success\"}") == 1);
    assert_true(metric("workqueue_retries_total{controller=\"workergroup\",name=\"workergroup\"}") == 4);
}

static void a_later_look_comes_by_itself(void **state)
{
    (void)state;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    turn();
    finish("a", (struct reconcile_result){.requeue_ms = 5});
    while (!t.running)
        turn();
    assert_true(metric("controller_runtime_reconcile_total{controller=\"workergroup\",result=\"requeue_after\"}") == 1);
    finish("a", (struct reconcile_result){.requeue_ms = 0});
    while (!t.running)
        turn();
    assert_true(metric("controller_runtime_reconcile_total{controller=\"workergroup\",result=\"requeue\"}") == 1);
    finish("a", (struct reconcile_result){.requeue_ms = -1});
    loop_run(t.loop);
    assert_int_equal(t.runs, 3);
}

static void a_new_key_does_not_wait_for_a_delayed_one(void **state)
{
    (void)state;
    t.at_once = true;
    t.answer.requeue_ms = 1000000;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    turn();
    controller_add(t.controller, "b");
    turn();
    assert_string_equal(t.trace, "a b ");
}

static void reconciles_that_finish_at_once_do_not_starve_the_loop(void **state)
{
    (void)state;
    t.at_once = true;
    controller_start(t.controller);
    for (int i = 0; i < 10; i++) {
        char key[8];
        snprintf(key, sizeof key, "k%d", i);
        controller_add(t.controller, key);
    }
    loop_run_once(t.loop, 0);
    assert_int_equal(t.runs, 3); // max_concurrent in each turn
    loop_run(t.loop);
    assert_int_equal(t.runs, 10);
}

static void after_the_stop_no_key_is_given_out(void **state)
{
    (void)state;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    turn();
    controller_add(t.controller, "b");
    controller_stop(t.controller);
    controller_add(t.controller, "c");
    finish("a", (struct reconcile_result){.code = ERR_IO});
    loop_run(t.loop);
    assert_string_equal(t.trace, "a ");
    assert_true(controller_idle(t.controller));
}

static void keys_in_progress_may_be_forgotten(void **state)
{
    (void)state;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    turn();
    assert_int_equal(t.running, 1); // teardown frees the controller, and LeakSanitizer checks the rest
}

static void gauges_follow(void **state)
{
    (void)state;
    controller_start(t.controller);
    for (const char *const *k = (const char *const[]){"a", "b", "c", "d", NULL}; *k; k++)
        controller_add(t.controller, *k);
    turn();
    assert_true(metric("controller_runtime_active_workers{controller=\"workergroup\"}") == 3);
    assert_true(metric("controller_runtime_max_concurrent_reconciles{controller=\"workergroup\"}") == 3);
    assert_true(metric("workqueue_depth{controller=\"workergroup\",name=\"workergroup\"}") == 1);
    assert_true(metric("workqueue_adds_total{controller=\"workergroup\",name=\"workergroup\"}") == 4);
    assert_true(metric("workqueue_queue_duration_seconds_count{controller=\"workergroup\",name=\"workergroup\"}") == 3);
    assert_true(metric("workqueue_unfinished_work_seconds{controller=\"workergroup\",name=\"workergroup\"}") >= 0);
    assert_true(
        metric("workqueue_longest_running_processor_seconds{controller=\"workergroup\",name=\"workergroup\"}") >= 0);
    finish("a", (struct reconcile_result){.requeue_ms = -1});
    assert_true(metric("controller_runtime_reconcile_time_seconds_count{controller=\"workergroup\"}") == 1);
    assert_true(metric("workqueue_work_duration_seconds_count{controller=\"workergroup\",name=\"workergroup\"}") == 1);
}

static void it_works_without_metrics(void **state)
{
    (void)state;
    struct controller *with = t.controller;
    t.controller = controller_new(t.loop, &(struct controller_options){.name = "x", .reconcile = reconcile});
    t.at_once = true;
    controller_start(t.controller);
    controller_add(t.controller, "a");
    loop_run(t.loop);
    assert_string_equal(t.trace, "a ");
    controller_free(t.controller);
    controller_free(NULL);
    t.controller = with;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CONTROLLER_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        CONTROLLER_TEST(keys_wait_for_the_start),
        CONTROLLER_TEST(many_keys_run_at_once_but_not_more_than_allowed),
        CONTROLLER_TEST(a_key_never_runs_twice_at_a_time),
        CONTROLLER_TEST(an_error_comes_back_after_a_backoff_until_it_succeeds),
        CONTROLLER_TEST(a_later_look_comes_by_itself),
        CONTROLLER_TEST(a_new_key_does_not_wait_for_a_delayed_one),
        CONTROLLER_TEST(reconciles_that_finish_at_once_do_not_starve_the_loop),
        CONTROLLER_TEST(after_the_stop_no_key_is_given_out),
        CONTROLLER_TEST(keys_in_progress_may_be_forgotten),
        CONTROLLER_TEST(gauges_follow),
        CONTROLLER_TEST(it_works_without_metrics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
