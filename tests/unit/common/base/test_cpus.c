// SPDX-License-Identifier: Apache-2.0
#include "common/base/cpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>

static void a_quota_is_in_whole_cpus(void **state)
{
    (void)state;
    assert_int_equal(cpus_of_quota("200000 100000\n"), 2);
    assert_int_equal(cpus_of_quota("399999 100000\n"), 3);
    assert_int_equal(cpus_of_quota("50000 100000\n"), 1); // half of one
    assert_int_equal(cpus_of_quota("200000\n 100000\n"), 2);
}

static void what_is_no_quota_is_none(void **state)
{
    static const char *const texts[] = {"max 100000\n", "-1\n 100000\n", "", " ", "200000", "200000 0", "0 100000"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(cpus_of_quota(texts[i]), 0);
}

static void who_is_tied_to_one_has_one(void **state)
{
    cpu_set_t all, one;
    int first = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cpus_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_in_range(cpus_available(), 1, CPU_COUNT(&all));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quota_is_in_whole_cpus),
        cmocka_unit_test(what_is_no_quota_is_none),
        cmocka_unit_test(who_is_tied_to_one_has_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
