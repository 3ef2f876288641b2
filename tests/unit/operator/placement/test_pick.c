// SPDX-License-Identifier: Apache-2.0
#include "operator/placement/pick.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct choice NONE = {0};

static struct choice used(int64_t room)
{
    return (struct choice){.room = room};
}

static struct choice whole(int64_t room)
{
    return (struct choice){.room = room, .whole = true};
}

static struct choice holding(int64_t have, int64_t room)
{
    return (struct choice){.room = room, .have = have};
}

static struct choice avoided(int64_t room)
{
    return (struct choice){.room = room, .avoid = true};
}

#define CHOICES(...) ((struct choice[]){__VA_ARGS__, NONE})

typedef void (*pick)(struct choice *, size_t, int64_t, struct arena *);

// The choices end with NONE. `want` has a number for each of them.
static void expect(pick pick_some, struct choice *c, int64_t n, const int64_t *want)
{
    struct arena a = ARENA_INIT;
    size_t n_choices = 0;
    while (c[n_choices].room || c[n_choices].have)
        n_choices++;
    pick_some(c, n_choices, n, &a);
    for (size_t i = 0; i < n_choices; i++)
        assert_int_equal(c[i].take, want[i]);
    arena_done(&a);
}

#define EXPECT(pick_some, choices, n, ...) expect(pick_some, choices, n, (int64_t[]){__VA_ARGS__})

static void the_tightest_leaves_the_least(void **state)
{
    (void)state;
    struct choice c[] = {used(8), used(5), used(3), used(5)};
    assert_ptr_equal(pick_tightest(c, ARRAY_LEN(c), 4), &c[1]);
    assert_ptr_equal(pick_tightest(c, ARRAY_LEN(c), 3), &c[2]);
    assert_ptr_equal(pick_tightest(c, ARRAY_LEN(c), 6), &c[0]);
    assert_null(pick_tightest(c, ARRAY_LEN(c), 9));
}

static void what_is_in_use_comes_before_what_is_whole_unless_that_is_filled(void **state)
{
    (void)state;
    struct choice c[] = {whole(4), used(7)};
    assert_ptr_equal(pick_tightest(c, ARRAY_LEN(c), 3), &c[1]);
    assert_ptr_equal(pick_tightest(c, ARRAY_LEN(c), 4), &c[0]);
}

static void what_is_to_be_spared_comes_last(void **state)
{
    (void)state;
    struct choice c[] = {avoided(4), whole(9)};
    assert_ptr_equal(pick_tightest(c, ARRAY_LEN(c), 4), &c[1]);
    EXPECT(pick_evenly, CHOICES(avoided(4), whole(9), used(2)), 2, 0, 1, 1);
}

static void fewest_takes_the_largest_and_a_tight_last_one(void **state)
{
    (void)state;
    EXPECT(pick_fewest, CHOICES(used(4), used(8), used(5)), 12, 4, 8, 0);
    EXPECT(pick_fewest, CHOICES(used(8), used(8), used(3)), 17, 8, 8, 1);
    EXPECT(pick_fewest, CHOICES(used(1), used(1), used(1)), 3, 1, 1, 1);
}

static void fewest_exchanges_large_ones_for_smaller_ones_that_do(void **state)
{
    (void)state;
    EXPECT(pick_fewest, CHOICES(whole(8), whole(8), used(7), used(5)), 12, 0, 0, 7, 5);
    EXPECT(pick_fewest, CHOICES(whole(8), whole(8), whole(8), used(7), used(6)), 20, 8, 0, 0, 7, 5);
}

static void fewest_goes_to_what_is_held_first(void **state)
{
    (void)state;
    EXPECT(pick_fewest, CHOICES(used(3), holding(1, 5), holding(2, 4)), 4, 0, 0, 4);
    EXPECT(pick_fewest, CHOICES(used(3), holding(1, 2), used(9)), 5, 3, 2, 0);
    EXPECT(pick_fewest, CHOICES(holding(4, 0), used(9)), 2, 0, 2);
}

static void evenly_raises_the_lowest_first(void **state)
{
    (void)state;
    EXPECT(pick_evenly, CHOICES(used(9), used(9), used(9)), 6, 2, 2, 2);
    EXPECT(pick_evenly, CHOICES(used(9), used(1), used(9)), 6, 3, 1, 2);
    EXPECT(pick_evenly, CHOICES(holding(2, 9), used(9), used(9)), 4, 0, 2, 2);
    EXPECT(pick_evenly, CHOICES(holding(5, 9), holding(1, 2), used(9)), 9, 1, 2, 6);
}

static void evenly_uses_up_what_is_in_use_before_it_breaks_up_what_is_whole(void **state)
{
    (void)state;
    EXPECT(pick_evenly, CHOICES(whole(8), used(8), used(2)), 2, 0, 1, 1);
    EXPECT(pick_evenly, CHOICES(whole(8), used(8), used(2)), 4, 1, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tightest_leaves_the_least),
        cmocka_unit_test(what_is_in_use_comes_before_what_is_whole_unless_that_is_filled),
        cmocka_unit_test(what_is_to_be_spared_comes_last),
        cmocka_unit_test(fewest_takes_the_largest_and_a_tight_last_one),
        cmocka_unit_test(fewest_exchanges_large_ones_for_smaller_ones_that_do),
        cmocka_unit_test(fewest_goes_to_what_is_held_first),
        cmocka_unit_test(evenly_raises_the_lowest_first),
        cmocka_unit_test(evenly_uses_up_what_is_in_use_before_it_breaks_up_what_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
