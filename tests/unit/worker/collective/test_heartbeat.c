// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/heartbeat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void without_a_limit_nobody_is_asked(void **state)
{
    (void)state;
    struct heartbeat p = heartbeat_new(0);
    assert_false(heartbeat_due(&p, 1000000));
    assert_int_equal(heartbeat_wait(&p, 1000000, -1), -1);
    assert_int_equal(heartbeat_wait(&p, 1000000, 7), 7);
}

static void a_question_is_due_eight_times_in_the_limit(void **state)
{
    (void)state;
    struct heartbeat p = heartbeat_new(40000);
    assert_int_equal(heartbeat_wait(&p, 5, -1), 0);
    assert_true(heartbeat_due(&p, 5));
    assert_false(heartbeat_due(&p, 5));
    assert_int_equal(heartbeat_wait(&p, 5, -1), 5000);
    assert_int_equal(heartbeat_wait(&p, 5, 7), 7);
    assert_int_equal(heartbeat_wait(&p, 5, 20000), 5000);
    assert_false(heartbeat_due(&p, 5004));
    assert_int_equal(heartbeat_wait(&p, 5004, -1), 1);
    assert_true(heartbeat_due(&p, 5005));
}

static void the_shortest_limit_does_not_keep_the_thread_busy(void **state)
{
    (void)state;
    struct heartbeat p = heartbeat_new(1);
    assert_true(heartbeat_due(&p, 5));
    assert_int_equal(heartbeat_wait(&p, 5, -1), 1);
}

static void who_leaves_all_questions_without_an_answer_is_silent(void **state)
{
    (void)state;
    int asked = 0;
    for (int i = 0; i < 2; i++) {
        asked = 0; // an answer
        for (int k = 0; k < HEARTBEAT_QUESTIONS; k++)
            assert_true(heartbeat_ask(&asked));
    }
    assert_false(heartbeat_ask(&asked));
}

// How long it waits while it runs, if it is stopped for an hour at `stopped`, and nobody answers.
static int64_t waits(int64_t limit_ms, int64_t stopped)
{
    struct heartbeat p = heartbeat_new(limit_ms);
    int64_t now = 0, away = 0;
    int asked = 0;
    for (;; now++) {
        if (now == stopped)
            away = 3600000;
        if (heartbeat_due(&p, now + away) && !heartbeat_ask(&asked))
            return now;
    }
}

static void who_was_stopped_itself_waits_three_quarters_of_the_limit_in_all(void **state)
{
    (void)state;
    assert_int_equal(waits(40000, -1), 35000);
    for (int64_t stopped = 1; stopped < 35000; stopped += 499)
        assert_in_range(waits(40000, stopped), 30000, 35000);
}

// It may have been stopped itself: the answers come after it goes on.
static void after_a_long_time_there_is_one_question_not_one_for_each_that_was_missed(void **state)
{
    (void)state;
    struct heartbeat p = heartbeat_new(40000);
    assert_true(heartbeat_due(&p, 0));
    assert_int_equal(heartbeat_wait(&p, 3600000, -1), 0);
    assert_true(heartbeat_due(&p, 3600000));
    assert_false(heartbeat_due(&p, 3600000));
    assert_int_equal(heartbeat_wait(&p, 3600000, -1), 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_nobody_is_asked),
        cmocka_unit_test(a_question_is_due_eight_times_in_the_limit),
        cmocka_unit_test(the_shortest_limit_does_not_keep_the_thread_busy),
        cmocka_unit_test(who_leaves_all_questions_without_an_answer_is_silent),
        cmocka_unit_test(who_was_stopped_itself_waits_three_quarters_of_the_limit_in_all),
        cmocka_unit_test(after_a_long_time_there_is_one_question_not_one_for_each_that_was_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
