// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/alarm.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { MANY = 2 * ALARMS_AT_ONCE + 1 };

struct counted {
    struct alarm alarm;
    int rung;
};

static struct alarms all;
static struct counted counted[MANY];

static int setup(void **state)
{
    (void)state;
    all = (struct alarms){.loop = loop_new()};
    for (int i = 0; i < MANY; i++)
        counted[i] = (struct counted){.rung = 0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    deadlines_done(&all.due);
    loop_free(all.loop);
    return 0;
}

static void count(struct alarm *a)
{
    CONTAINER_OF(a, struct counted, alarm)->rung++;
}

static void again(struct alarm *a)
{
    count(a);
    alarm_set(a, &all, 0, again);
}

static int rung(void)
{
    int n = 0;
    for (int i = 0; i < MANY; i++)
        n += counted[i].rung;
    return n;
}

static void thousands_that_are_due_at_once_ring_in_slices(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        alarm_set(&counted[i].alarm, &all, 0, count);
    for (int want = ALARMS_AT_ONCE; alarms_wait_ms(&all) == 0; want += ALARMS_AT_ONCE) {
        alarms_ring(&all);
        assert_int_equal(rung(), MIN(want, MANY));
    }
    assert_int_equal(rung(), MANY);
    assert_int_equal(alarms_wait_ms(&all), -1);
}

static void one_that_sets_itself_again_does_not_ring_for_ever(void **state)
{
    (void)state;
    alarm_set(&counted[0].alarm, &all, 0, again);
    alarms_ring(&all);
    assert_in_range(rung(), 1, ALARMS_AT_ONCE);
    alarm_clear(&counted[0].alarm, &all);
    assert_int_equal(alarms_wait_ms(&all), -1);
}

static void one_that_is_not_due_or_was_taken_back_does_not_ring(void **state)
{
    (void)state;
    alarm_set(&counted[0].alarm, &all, 3600 * 1000, count);
    alarm_set(&counted[1].alarm, &all, 0, count);
    alarm_clear(&counted[1].alarm, &all);
    alarms_ring(&all);
    assert_int_equal(rung(), 0);
    assert_int_equal(alarms_wait_ms(&all), 3600 * 1000);
    alarm_clear(&counted[0].alarm, &all);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(thousands_that_are_due_at_once_ring_in_slices),
        TEST(one_that_sets_itself_again_does_not_ring_for_ever),
        TEST(one_that_is_not_due_or_was_taken_back_does_not_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
