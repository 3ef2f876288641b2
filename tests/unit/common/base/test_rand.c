// SPDX-License-Identifier: Apache-2.0
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

static void the_same_seed_gives_the_published_sequence(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 1234567); // reference values of splitmix64
    assert_true(rand_u64(&r) == 6457827717110365317u);
    assert_true(rand_u64(&r) == 3203168211198807973u);
}

static void below_stays_below_and_reaches_everything(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 3);
    unsigned seen = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rand_below(&r, 6);
        assert_true(x < 6);
        seen |= 1u << x;
    }
    assert_int_equal(seen, 63);
    assert_int_equal(rand_below(&r, 0), 0);
    assert_int_equal(rand_below(&r, 1), 0);
}

static void ranges_include_both_ends(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 4);
    bool lo = false, hi = false;
    for (int i = 0; i < 1000; i++) {
        int64_t x = rand_range(&r, -2, 3);
        assert_true(x >= -2 && x <= 3);
        lo |= x == -2;
        hi |= x == 3;
    }
    assert_true(lo && hi);
    assert_int_equal(rand_range(&r, 9, 9), 9);
}

static void the_widest_range_is_fine(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 5);
    bool negative = false, positive = false;
    for (int i = 0; i < 100; i++) {
        int64_t x = rand_range(&r, INT64_MIN, INT64_MAX);
        negative |= x < 0;
        positive |= x > 0;
    }
    assert_true(negative && positive);
}

static void the_system_seeds_differ(void **state)
{
    (void)state;
    struct rand a, b;
    rand_seed_system(&a);
    rand_seed_system(&b);
    assert_true(a.state != b.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_seed_gives_the_published_sequence),
        cmocka_unit_test(below_stays_below_and_reaches_everything),
        cmocka_unit_test(ranges_include_both_ends),
        cmocka_unit_test(the_widest_range_is_fine),
        cmocka_unit_test(the_system_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
