// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/pulse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void without_a_limit_nobody_is_asked(void **state)
{
    (void)state;
    struct pulse p = pulse_new(0);
    assert_false(pulse_due(&p, 1000000));
    assert_int_equal(pulse_wait(&p, 1000000, -1), -1);
    assert_int_equal(pulse_wait(&p, 1000000, 7), 7);
}

static void a_question_is_due_four_times_in_the_limit(void **state)
{
    (void)state;
    struct pulse p = pulse_new(40000);
    assert_int_equal(pulse_wait(&p, 5, -1), 0);
    assert_true(pulse_due(&p, 5));
    assert_false(pulse_due(&p, 5));
    assert_int_equal(pulse_wait(&p, 5, -1), 10000);
    assert_int_equal(pulse_wait(&p, 5, 7), 7);
    assert_int_equal(pulse_wait(&p, 5, 20000), 10000);
    assert_false(pulse_due(&p, 10004));
    assert_int_equal(pulse_wait(&p, 10004, -1), 1);
    assert_true(pulse_due(&p, 10005));
}

static void the_shortest_limit_does_not_keep_the_thread_busy(void **state)
{
    (void)state;
    struct pulse p = pulse_new(1);
    assert_true(pulse_due(&p, 5));
    assert_int_equal(pulse_wait(&p, 5, -1), 1);
}

static void who_leaves_three_questions_without_an_answer_is_silent(void **state)
{
    (void)state;
    int asked = 0;
    for (int i = 0; i < 2; i++) {
        asked = 0; // an answer
        for (int k = 0; k < PULSE_QUESTIONS; k++)
            assert_true(pulse_ask(&asked));
    }
    assert_false(pulse_ask(&asked));
}

// It may have been stopped itself: the answers come after it goes on.
static void after_a_long_time_there_is_one_question_not_one_for_each_that_was_missed(void **state)
{
    (void)state;
    struct pulse p = pulse_new(40000);
    assert_true(pulse_due(&p, 0));
    assert_int_equal(pulse_wait(&p, 3600000, -1), 0);
    assert_true(pulse_due(&p, 3600000));
    assert_false(pulse_due(&p, 3600000));
    assert_int_equal(pulse_wait(&p, 3600000, -1), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_nobody_is_asked),
        cmocka_unit_test(a_question_is_due_four_times_in_the_limit),
        cmocka_unit_test(the_shortest_limit_does_not_keep_the_thread_busy),
        cmocka_unit_test(who_leaves_three_questions_without_an_answer_is_silent),
        cmocka_unit_test(after_a_long_time_there_is_one_question_not_one_for_each_that_was_missed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
