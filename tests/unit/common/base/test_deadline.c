// SPDX-License-Identifier: Apache-2.0
#include "common/base/deadline.h"

#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void the_first_is_the_earliest(void **state)
{
    (void)state;
    struct deadlines d = DEADLINES_INIT;
    struct deadline a = {0}, b = {0}, never = {0};
    assert_null(deadlines_first(&d));
    deadlines_add(&d, &a, 20);
    deadlines_add(&d, &b, 10);
    assert_ptr_equal(deadlines_first(&d), &b);
    deadlines_add(&d, &b, 30); // moves it
    assert_ptr_equal(deadlines_first(&d), &a);
    deadlines_del(&d, &a);
    deadlines_del(&d, &a);
    deadlines_del(&d, &never);
    assert_ptr_equal(deadlines_first(&d), &b);
    assert_int_equal(d.used, 1);
    deadlines_done(&d);
}

static void it_stays_sorted_under_random_changes(void **state)
{
    (void)state;
    enum { N = 200 };
    static struct deadline all[N];
    struct deadlines d = DEADLINES_INIT;
    struct rand rnd;
    rand_seed(&rnd, 3);
    for (int step = 0; step < 5000; step++) {
        struct deadline *l = &all[rand_below(&rnd, N)];
        if (rand_below(&rnd, 3))
            deadlines_add(&d, l, rand_range(&rnd, 0, 1000));
        else
            deadlines_del(&d, l);
        int64_t earliest = INT64_MAX;
        for (int i = 0; i < N; i++)
            if (all[i].index)
                earliest = MIN(earliest, all[i].at);
        const struct deadline *first = deadlines_first(&d);
        assert_int_equal(first ? first->at : INT64_MAX, earliest);
    }
    deadlines_done(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_the_earliest),
        cmocka_unit_test(it_stays_sorted_under_random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
