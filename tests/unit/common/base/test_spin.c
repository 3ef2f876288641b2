// SPDX-License-Identifier: Apache-2.0
#include "common/base/spin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SHORT = SPIN_SHORT_US, LONG = SPIN_SHORT_US + 1 };

static struct spin trusting(void)
{
    struct spin s = SPIN_INIT;
    for (int i = 0; i < SPIN_SCORE_MAX; i++)
        spin_slept(&s, SHORT);
    return s;
}

// How many of the waits begin with a look, where they are short or long in turns as told.
static int looks(struct spin *s, int waits, int n_short, int n_long)
{
    int n = 0;
    for (int i = 0; i < waits; i++) {
        bool is_short = i % (n_short + n_long) < n_short;
        bool look = spin_wanted(s);
        n += look;
        if (look)
            spin_looked(s, is_short ? 10 : SPIN_US, is_short);
        else
            spin_slept(s, is_short ? SHORT : LONG);
    }
    return n;
}

static void who_is_idle_sleeps(void **state)
{
    struct spin s = SPIN_INIT;
    (void)state;
    assert_false(spin_wanted(&s));
    assert_int_equal(looks(&s, 1000, 0, 1), 0);
}

static void short_waits_make_it_look(void **state)
{
    struct spin s = SPIN_INIT;
    (void)state;
    for (int i = 0; i < SPIN_TRUST; i++) {
        assert_false(spin_wanted(&s));
        spin_slept(&s, SHORT);
    }
    assert_true(spin_wanted(&s));
    assert_int_equal(looks(&s, 1000, 1, 0), 1000);
}

static void a_long_wait_among_short_ones_does_not_end_it(void **state)
{
    struct spin s = trusting();
    (void)state;
    assert_int_equal(looks(&s, 1000, 9, 1), 1000);
}

static void it_stops_soon_once_waits_are_long(void **state)
{
    struct spin s = trusting();
    (void)state;
    assert_true(looks(&s, 1000, 0, 1) <= (SPIN_SCORE_MAX - SPIN_TRUST) / 2 + 1);
}

static void it_does_not_pay_where_every_other_wait_is_long(void **state)
{
    struct spin s = trusting();
    (void)state;
    assert_true(looks(&s, 10000, 1, 1) <= 2 * SPIN_SCORE_MAX);
}

// Waits of that length until it looks again, all short ones.
static int sleeps_until_it_looks(struct spin *s, int us)
{
    int n = 0;
    for (; !spin_wanted(s); n++)
        spin_slept(s, us);
    return n;
}

static void after_a_late_look_it_sleeps_for_many_times_as_long(void **state)
{
    struct spin s = trusting();
    (void)state;
    spin_looked(&s, SPIN_LATE_US, true);
    assert_true(spin_wanted(&s));
    spin_looked(&s, 1000, true);
    assert_int_equal(sleeps_until_it_looks(&s, 100), SPIN_REST * 1000 / 100);
    spin_looked(&s, 3000, false);
    assert_int_equal(sleeps_until_it_looks(&s, 100), SPIN_REST * 3000 / 100);
    assert_int_equal(looks(&s, 100, 1, 0), 100);
}

static void a_standstill_of_the_machine_does_not_end_it_for_long(void **state)
{
    struct spin s = trusting();
    (void)state;
    spin_looked(&s, INT64_MAX, false);
    assert_int_equal(sleeps_until_it_looks(&s, 100), SPIN_REST_US_MAX / 100);
}

static void a_long_sleep_is_a_rest_too(void **state)
{
    struct spin s = trusting();
    (void)state;
    spin_looked(&s, 1000, false);
    spin_slept(&s, SPIN_REST * 1000);
    assert_true(spin_wanted(&s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_idle_sleeps),
        cmocka_unit_test(short_waits_make_it_look),
        cmocka_unit_test(a_long_wait_among_short_ones_does_not_end_it),
        cmocka_unit_test(it_stops_soon_once_waits_are_long),
        cmocka_unit_test(it_does_not_pay_where_every_other_wait_is_long),
        cmocka_unit_test(after_a_late_look_it_sleeps_for_many_times_as_long),
        cmocka_unit_test(a_standstill_of_the_machine_does_not_end_it_for_long),
        cmocka_unit_test(a_long_sleep_is_a_rest_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
