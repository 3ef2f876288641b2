// SPDX-License-Identifier: Apache-2.0
#include "common/wire/blob.h"

#include "common/base/fiber.h"
#include "common/base/mem.h"
#include "common/wire/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void a_charge_counts_in_every_quota_above(void **state)
{
    (void)state;
    struct quota *all = quota_new(100, NULL), *one = quota_new(60, all), *two = quota_new(60, all);
    assert_true(quota_charge(one, 50));
    assert_int_equal(quota_used(one), 50);
    assert_int_equal(quota_used(all), 50);
    assert_false(quota_charge(one, 11)); // its own maximum
    assert_true(quota_charge(two, 50));
    assert_false(quota_charge(two, 1)); // the quota of all, and nothing stays charged
    assert_int_equal(quota_used(two), 50);
    assert_int_equal(quota_used(all), 100);
    quota_refund(one, 50);
    assert_true(quota_charge(two, 10));
    quota_refund(two, 60);
    assert_int_equal(quota_used(all), 0);
    quota_unref(one);
    quota_unref(two);
    quota_unref(all);
}

static void a_blob_is_paid_for_until_nobody_holds_it(void **state)
{
    (void)state;
    struct quota *all = quota_new(10, NULL), *session = quota_new(10, all);
    struct blob *b = blob_copy("hello", 5, session);
    assert_memory_equal(b->data, "hello", 5);
    assert_null(blob_new(6, session));
    blob_ref(b);
    blob_unref(b);
    assert_int_equal(quota_used(session), 5);
    quota_unref(session); // the session ends, what it sent lives on
    assert_int_equal(quota_used(all), 5);
    blob_unref(b);
    assert_int_equal(quota_used(all), 0);
    quota_unref(all);
    blob_unref(NULL);
}

static void a_blob_grows_only_as_far_as_the_quota_goes(void **state)
{
    (void)state;
    struct quota *q = quota_new(100, NULL);
    struct blob *b = blob_new(0, q);
    for (size_t i = 0; i < 100; i++) {
        assert_true(blob_reserve(b, 1));
        b->data[b->len++] = (char)i;
    }
    assert_int_equal(quota_used(q), 100);
    assert_false(blob_reserve(b, 1));
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(b->data[i], i);
    blob_unref(b);
    assert_int_equal(quota_used(q), 0);
    quota_unref(q);
}

static void another_may_come_to_pay_for_a_blob(void **state)
{
    (void)state;
    struct quota *all = quota_new(1000, NULL), *from = quota_new(100, all), *to = quota_new(50, all);
    struct blob *small = blob_new(30, from), *big = blob_new(60, from);
    struct blob *rest = blob_new(900, all);
    assert_true(blob_recharge(small, to)); // which `all` has no room for twice
    assert_false(blob_recharge(big, to));
    blob_unref(rest);
    assert_int_equal(quota_used(from), 60);
    assert_int_equal(quota_used(to), 30);
    assert_int_equal(quota_used(all), 90);
    blob_unref(small);
    blob_unref(big);
    assert_int_equal(quota_used(all), 0);
    quota_unref(from);
    quota_unref(to);
    quota_unref(all);
}

// Two quotas share what is left. What one takes makes the share of the other smaller than what that one has.
static void a_blob_that_another_cannot_pay_for_stays_paid_for_by_the_first(void **state)
{
    (void)state;
    struct quota *all = quota_new(1000, NULL), *ours = quota_new_fair(all, 1), *theirs = quota_new_fair(all, 1);
    struct quota *from = quota_new(1000, ours), *to = quota_new(1000, ours);
    struct blob *b = blob_new(10, from), *other = blob_new(490, to);
    assert_true(quota_charge(theirs, 100));
    assert_false(blob_recharge(b, to));
    assert_int_equal(quota_used(from), 10);
    assert_int_equal(quota_used(to), 490);
    assert_int_equal(quota_used(ours), 500);
    assert_int_equal(quota_used(all), 600);
    blob_unref(b);
    blob_unref(other);
    quota_refund(theirs, 100);
    assert_int_equal(quota_used(all), 0);
    quota_unref(from);
    quota_unref(to);
    quota_unref(ours);
    quota_unref(theirs);
    quota_unref(all);
}

static void without_a_quota_nothing_is_counted(void **state)
{
    (void)state;
    struct blob *b = blob_copy("x", 1, NULL);
    assert_true(blob_reserve(b, 1 << 20));
    blob_unref(b);
    assert_true(quota_charge(NULL, SIZE_MAX));
    assert_int_equal(quota_used(NULL), 0);
}

static void a_large_block_is_kept_for_the_next_blob(void **state)
{
    (void)state;
    struct quota *all = quota_new(64 << 20, NULL), *session = quota_new(64 << 20, all);
    struct blob *b = blob_new(1 << 20, session);
    const char *block = b->data;
    blob_unref(b);
    assert_int_equal(quota_used(all), 0); // what is kept is nobody's
    b = blob_new(1000 * 1000, session);
    assert_ptr_equal(b->data, block);
    assert_int_equal(quota_used(session), 1000 * 1000); // pays for what it asked for
    assert_true(blob_reserve(b, 10));
    assert_ptr_equal(b->data, block); // there is room
    blob_unref(b);
    quota_unref(session);
    quota_unref(all);
}

static void a_growing_blob_moves_into_a_block_that_was_kept(void **state)
{
    (void)state;
    struct quota *q = quota_new(64 << 20, NULL);
    struct blob *b = blob_new(1 << 20, q);
    const char *block = b->data;
    blob_unref(b);
    b = blob_copy("begin", 5, q);
    assert_true(blob_reserve(b, 300 * 1000));
    assert_ptr_equal(b->data, block);
    assert_memory_equal(b->data, "begin", 5);
    blob_unref(b);
    quota_unref(q);
}

static void a_short_blob_grows_step_by_step(void **state)
{
    (void)state;
    struct quota *q = quota_new(1 << 20, NULL);
    struct blob *b = blob_copy("a", 1, q);
    for (size_t n = b->len; n < 20000; n = b->len) {
        assert_true(blob_reserve(b, 1));
        b->data[b->len++] = (char)('a' + n % 26);
    }
    for (size_t i = 0; i < b->len; i++)
        assert_int_equal(b->data[i], 'a' + i % 26);
    blob_unref(b);
    assert_int_equal(quota_used(q), 0);
    quota_unref(q);
}

static void a_growing_blob_moves_into_the_largest_block(void **state)
{
    (void)state;
    struct quota *q = quota_new(64 << 20, NULL);
    struct blob *small = blob_new(BLOCK_CACHE_MIN, q), *large = blob_new(2 << 20, q), *middle = blob_new(1 << 20, q);
    const char *block = large->data;
    blob_unref(small);
    blob_unref(large);
    blob_unref(middle);
    struct blob *b = blob_copy("begin", 5, q);
    assert_true(blob_reserve(b, BLOCK_CACHE_MIN));
    assert_ptr_equal(b->data, block);
    b->len += BLOCK_CACHE_MIN;
    assert_true(blob_reserve(b, 1 << 20));
    assert_ptr_equal(b->data, block); // not moved again
    assert_true(quota_used(q) < 2 << 20);
    blob_unref(b);
    quota_unref(q);
}

static void grows(void *ctx)
{
    enum { PIECE = 64 << 10, ALL = 40 << 20 };
    static char piece[PIECE];
    struct blob *b = blob_copy(piece, PIECE, ctx);
    while (b->len < ALL) {
        assert_true(blob_reserve(b, PIECE));
        b->len += PIECE;
    }
    blob_unref(b);
}

// The fiber that copies bytes counts them.
static void a_blob_that_grows_long_is_never_copied_as_a_whole(void **state)
{
    (void)state;
    enum { UNIT = 4096, COPIED_MAX = 2 * BLOCK_CACHE_OWN };
    static const size_t kept[] = {0, 3 << 20, 16 << 20}; // blocks for it to move into
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        struct quota *q = quota_new(256 << 20, NULL);
        blob_unref(blob_new(kept[i], q));
        struct fiber *f = fiber_new(grows, q);
        int units = 0;
        while (!fiber_run(f, UNIT))
            units++;
        assert_in_range(units, 0, COPIED_MAX / UNIT);
        quota_unref(q);
    }
}

static void a_long_block_grows_with_its_content_also_where_another_is_in_the_way(void **state)
{
    (void)state;
    size_t size = BLOCK_CACHE_OWN;
    char *data = block_cache_new(NULL, size), *others[12];
    memset(data, 'a', size);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        size_t to = size + size / 2;
        others[i] = block_cache_new(NULL, BLOCK_CACHE_OWN);
        data = block_cache_grow(NULL, data, size, to);
        for (size_t k = 0; k < size; k += 4096)
            assert_int_equal(data[k], 'a');
        memset(data + size, 'a', to - size);
        size = to;
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        block_cache_free(others[i], BLOCK_CACHE_OWN);
    block_cache_free(data, size);
}

// In a loop whose turns have to be short, a long page would be cleared as a whole.
static void the_first_write_to_a_body_maps_one_short_page(void **state)
{
    (void)state;
    const struct block_cache s = {.in_steps = true};
    size_t size = (size_t)64 << 20, pages = size / (size_t)sysconf(_SC_PAGESIZE), resident = 0;
    unsigned char *in_core = xcalloc(pages, 1);
    char *data = block_cache_grow(&s, block_cache_new(&s, size / 2), size / 2, size);
    data[size / 2] = 1;
    assert_int_equal(mincore(data, size, in_core), 0);
    for (size_t i = 0; i < pages; i++)
        resident += in_core[i] & 1;
    assert_int_equal(resident, 1);
    block_cache_free(data, size);
    free(in_core);
}

// Blocks of all kinds of lengths: from malloc(), mappings, and one that is too long to be kept.
static void in_such_a_loop_what_is_too_much_goes_in_steps(void **state)
{
    static const size_t sizes[] = {BLOCK_CACHE_MIN,          BLOCK_CACHE_OWN - 1,  BLOCK_CACHE_OWN, BLOCK_CACHE_OWN + 1,
                                   3 * BLOCK_CACHE_STEP + 1, 9 * BLOCK_CACHE_STEP, BLOCK_CACHE_MIN, (size_t)60 << 20};
    struct block_cache s;
    (void)state;
    block_cache_init(&s, 2 * BLOCK_CACHE_OWN);
    s.in_steps = true;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        block_cache_give(&s, block_cache_new(&s, sizes[i]), sizes[i]);
    while (block_cache_is_over(&s)) {
        size_t before = s.bytes;
        block_cache_go_on(&s);
        assert_in_range(before - s.bytes, 1, 2 * BLOCK_CACHE_STEP + BLOCK_CACHE_OWN);
    }
    assert_int_equal(s.n, 2); // the newest that are not too long
    assert_int_equal(s.bytes, BLOCK_CACHE_OWN + 1 + BLOCK_CACHE_MIN);
    for (size_t i = 0; i < BLOCK_CACHE_BLOCKS; i++)
        block_cache_give(&s, block_cache_new(&s, BLOCK_CACHE_MIN), BLOCK_CACHE_MIN);
    while (block_cache_is_over(&s))
        block_cache_go_on(&s);
    assert_int_equal(s.n, 2 * BLOCK_CACHE_OWN / BLOCK_CACHE_MIN);
    block_cache_done(&s);
}

static void older_blocks_make_way_and_too_large_ones_are_not_kept(void **state)
{
    (void)state;
    struct block_cache s;
    size_t size;
    block_cache_init(&s, 2 * BLOCK_CACHE_MIN);
    for (int i = 0; i < 3; i++)
        block_cache_give(&s, malloc(BLOCK_CACHE_MIN), BLOCK_CACHE_MIN);
    assert_int_equal(s.n, 2);
    block_cache_give(&s, malloc(2 * BLOCK_CACHE_MIN + 1), 2 * BLOCK_CACHE_MIN + 1);
    assert_int_equal(s.n, 2);
    assert_null(block_cache_take(&s, BLOCK_CACHE_MIN + 1, &size));
    block_cache_give(&s, malloc(2 * BLOCK_CACHE_MIN), 2 * BLOCK_CACHE_MIN);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.bytes, 2 * BLOCK_CACHE_MIN);
    char *block = block_cache_take(&s, BLOCK_CACHE_MIN, &size);
    assert_non_null(block);
    assert_int_equal(size, 2 * BLOCK_CACHE_MIN);
    free(block);
    assert_null(block_cache_take(&s, BLOCK_CACHE_MIN, &size));
    block_cache_done(&s);
}

static void a_piece_does_not_take_the_block_of_a_whole_body(void **state)
{
    (void)state;
    struct block_cache s;
    size_t size;
    block_cache_init(&s, 64 * BLOCK_CACHE_MIN);
    block_cache_give(&s, block_cache_new(NULL, 32 * BLOCK_CACHE_MIN), 32 * BLOCK_CACHE_MIN);
    assert_null(block_cache_take(&s, BLOCK_CACHE_MIN, &size));
    char *block = block_cache_take_largest(&s, BLOCK_CACHE_MIN, &size);
    assert_int_equal(size, 32 * BLOCK_CACHE_MIN);
    block_cache_free(block, size);
    block_cache_done(&s);
}

static void what_is_lent_stays_its_owners(void **state)
{
    (void)state;
    char data[] = "abc";
    struct gather g;
    struct blob *b = blob_lend(data, 3), *other = blob_copy("x", 1, NULL);
    gather_init(&g);
    gather_add(&g, b->data, 3, b);
    gather_add(&g, other->data, 1, other);
    gather_sent(&g, 1);
    gather_own(&g, b);
    assert_int_equal(b->refs, 1);
    assert_int_equal(other->refs, 2);
    blob_unref(b);
    memset(data, '?', 3);
    assert_memory_equal(g.iov[0].iov_base, "bc", 2);
    assert_int_equal(g.len, 3);
    gather_done(&g);
    blob_unref(other);
}

// One of 200 MiB that has grown, and is therefore somewhat longer; none of it but two pages is touched.
static void a_body_is_kept_whole_where_such_bodies_are_expected(void **state)
{
    (void)state;
    const size_t body = (size_t)200 << 20;
    for (int expected = 0; expected < 2; expected++) {
        struct quota *q = quota_new((size_t)1 << 30, NULL);
        if (expected)
            quota_keep_body(q, body);
        struct blob *b = blob_new(body - 1, q);
        b->len = 0; // so that nothing is copied
        b->size = body - 1;
        assert_true(blob_reserve(b, body));
        b->data[body - 1] = 'z';
        char *block = b->data;
        blob_unref(b);
        assert_int_equal(quota_block_cache(q)->bytes > body, expected);
        b = blob_new(body, q);
        assert_int_equal(b->data == block, expected);
        b->data[0] = 'a'; // whatever the kernel has made of it
        b->data[body - 1] = 'b';
        assert_int_equal(b->data[0], 'a');
        blob_unref(b);
        quota_unref(q);
    }
}

static void of_equal_blocks_the_last_one_is_taken_first(void **state)
{
    (void)state;
    struct block_cache s;
    size_t size;
    char *first = malloc(BLOCK_CACHE_MIN), *last = malloc(BLOCK_CACHE_MIN);
    block_cache_init(&s, 64 * BLOCK_CACHE_MIN);
    block_cache_give(&s, first, BLOCK_CACHE_MIN);
    block_cache_give(&s, last, BLOCK_CACHE_MIN);
    assert_ptr_equal(block_cache_take(&s, BLOCK_CACHE_MIN, &size), last);
    assert_ptr_equal(block_cache_take(&s, BLOCK_CACHE_MIN, &size), first);
    free(first);
    free(last);
    block_cache_done(&s);
}

static void a_block_that_changes_quotas_is_found_again(void **state)
{
    (void)state;
    struct quota *all = quota_new(64 << 20, NULL), *here = quota_new(64 << 20, all), *there = quota_new(64 << 20, all);
    struct blob *b = blob_new(BLOCK_CACHE_MIN, here);
    const char *block = b->data;
    assert_true(blob_recharge(b, there));
    blob_unref(b);
    b = blob_new(BLOCK_CACHE_MIN, here);
    assert_ptr_equal(b->data, block);
    blob_unref(b);
    quota_unref(there);
    quota_unref(here);
    quota_unref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_piece_does_not_take_the_block_of_a_whole_body),
        cmocka_unit_test(what_is_lent_stays_its_owners),
        cmocka_unit_test(of_equal_blocks_the_last_one_is_taken_first),
        cmocka_unit_test(a_block_that_changes_quotas_is_found_again),
        cmocka_unit_test(a_charge_counts_in_every_quota_above),
        cmocka_unit_test(a_blob_is_paid_for_until_nobody_holds_it),
        cmocka_unit_test(a_blob_grows_only_as_far_as_the_quota_goes),
        cmocka_unit_test(another_may_come_to_pay_for_a_blob),
        cmocka_unit_test(a_blob_that_another_cannot_pay_for_stays_paid_for_by_the_first),
        cmocka_unit_test(without_a_quota_nothing_is_counted),
        cmocka_unit_test(a_large_block_is_kept_for_the_next_blob),
        cmocka_unit_test(a_growing_blob_moves_into_a_block_that_was_kept),
        cmocka_unit_test(a_short_blob_grows_step_by_step),
        cmocka_unit_test(a_growing_blob_moves_into_the_largest_block),
        cmocka_unit_test(a_long_block_grows_with_its_content_also_where_another_is_in_the_way),
        cmocka_unit_test(the_first_write_to_a_body_maps_one_short_page),
        cmocka_unit_test(in_such_a_loop_what_is_too_much_goes_in_steps),
        cmocka_unit_test(a_blob_that_grows_long_is_never_copied_as_a_whole),
        cmocka_unit_test(a_body_is_kept_whole_where_such_bodies_are_expected),
        cmocka_unit_test(older_blocks_make_way_and_too_large_ones_are_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
