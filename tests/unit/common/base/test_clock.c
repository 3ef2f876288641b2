// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void time_that_passes_is_no_jump(void **state)
{
    (void)state;
    struct clock_watch w = {0};
    assert_int_equal(clock_watch_jump(&w, 5000000, 70), 0);
    assert_int_equal(clock_watch_jump(&w, 8600000, 3600070), 0);
}

static void a_clock_that_is_set_is_noticed_once(void **state)
{
    (void)state;
    struct clock_watch w = {0};
    clock_watch_jump(&w, 5000000, 70);
    assert_int_equal(clock_watch_jump(&w, 8600010, 80), 3600000);
    assert_int_equal(clock_watch_jump(&w, 8600020, 90), 0);
    assert_int_equal(clock_watch_jump(&w, 1000030, 100), -7600000);
    assert_int_equal(clock_watch_jump(&w, 1000040, 110), 0);
}

static void small_steps_add_up(void **state)
{
    (void)state;
    struct clock_watch w = {0};
    clock_watch_jump(&w, 5000, 0);
    assert_int_equal(clock_watch_jump(&w, 5400, 0), 0);
    assert_int_equal(clock_watch_jump(&w, 5800, 0), 0);
    assert_int_equal(clock_watch_jump(&w, 6200, 0), 1200);
    assert_int_equal(clock_watch_jump(&w, 6200, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_passes_is_no_jump),
        cmocka_unit_test(a_clock_that_is_set_is_noticed_once),
        cmocka_unit_test(small_steps_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
