// SPDX-License-Identifier: Apache-2.0
// A silent node counts as lost after its time, whatever the clocks of the cluster say.
#include "operator/exec/decision_time.h"

#include "common/base/log.h"
#include "operator/reconcile/gang_pods.h"
#include "tests/unit/clock_fake.h"
#include "tests/unit/support/placement_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SECOND = 1000, HOUR = 3600 * SECOND, LOST_S = 60 };

static struct fixture {
    struct clock_fake clock;
    struct decision_time time;
    struct node *ready, *silent;
    struct pod *pod;
} f;

static void make(int64_t silent_since_ms)
{
    f.ready = build_node("n1", "gpu=8");
    f.silent = build_node("n1", "gpu=8 notready");
    f.silent->ready_changed_ms = silent_since_ms;
    f.pod = build_pod("a", "n1", "gpu=1");
    clock_fake_init(&f.clock, 70, 100 * (int64_t)HOUR);
    f.time = (struct decision_time){.clock = &f.clock.clock, .cluster = cluster_new()};
    f.time.leading_ms = decision_time_now(&f.time);
    cluster_set_node(f.time.cluster, f.ready);
}

static int teardown(void **state)
{
    (void)state;
    object_unref(&f.ready->obj);
    object_unref(&f.silent->obj);
    object_unref(&f.pod->obj);
    cluster_free(f.time.cluster);
    return 0;
}

static void fall_silent(void)
{
    cluster_set_node(f.time.cluster, f.silent);
    decision_time_saw(&f.time, &f.ready->obj, &f.silent->obj);
}

static int64_t seconds_left(void) // 0 = the node is lost
{
    int64_t left = 0;
    return pod_node_gone(f.time.cluster, f.pod, LOST_S, decision_time_now(&f.time), &left) ? 0 : left / SECOND;
}

static void a_node_that_falls_silent_has_its_time_by_our_own_clock(void **state)
{
    (void)state;
    make(99 * (int64_t)HOUR); // by a clock that is far behind ours
    fall_silent();
    assert_int_equal(seconds_left(), 60);
    clock_fake_advance(&f.clock, 59 * SECOND);
    assert_int_equal(seconds_left(), 1);
    clock_fake_advance(&f.clock, SECOND);
    assert_int_equal(seconds_left(), 0);
}

static void that_our_clock_is_set_makes_it_neither_longer_nor_shorter(void **state)
{
    (void)state;
    make(100 * (int64_t)HOUR);
    fall_silent();
    clock_fake_advance(&f.clock, 10 * SECOND);
    f.clock.wall += HOUR;
    assert_int_equal(seconds_left(), 50);
    f.clock.wall -= 2 * HOUR;
    assert_int_equal(seconds_left(), 50);
    clock_fake_advance(&f.clock, 50 * SECOND);
    assert_int_equal(seconds_left(), 0);
}

static void of_a_node_that_was_silent_before_we_came_its_condition_is_believed(void **state)
{
    (void)state;
    make(100 * (int64_t)HOUR - 40 * SECOND);
    cluster_set_node(f.time.cluster, f.silent);
    assert_int_equal(seconds_left(), 20);
}

static void one_that_comes_back_begins_again(void **state)
{
    (void)state;
    make(100 * (int64_t)HOUR);
    fall_silent();
    clock_fake_advance(&f.clock, 50 * SECOND);
    cluster_set_node(f.time.cluster, f.ready);
    decision_time_saw(&f.time, &f.silent->obj, &f.ready->obj);
    fall_silent();
    assert_int_equal(seconds_left(), 60);
}

static void the_time_since_which_we_lead_moves_with_the_clock(void **state)
{
    (void)state;
    make(0);
    clock_fake_advance(&f.clock, 10 * SECOND);
    f.clock.wall -= HOUR;
    assert_int_equal(decision_time_now(&f.time) - f.time.leading_ms, 10 * SECOND);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        T(a_node_that_falls_silent_has_its_time_by_our_own_clock),
        T(that_our_clock_is_set_makes_it_neither_longer_nor_shorter),
        T(of_a_node_that_was_silent_before_we_came_its_condition_is_believed),
        T(one_that_comes_back_begins_again),
        T(the_time_since_which_we_lead_moves_with_the_clock),
    };
    log_setup(LOG_ERROR, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
