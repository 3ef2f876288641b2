// SPDX-License-Identifier: Apache-2.0
#include "common/wire/blob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void a_charge_counts_in_every_quota_above(void **state)
{
    (void)state;
    struct quota *all = quota_new(100, NULL), *one = quota_new(60, all), *two = quota_new(60, all);
    assert_true(quota_charge(one, 50));
    assert_int_equal(quota_used(one), 50);
    assert_int_equal(quota_used(all), 50);
    assert_false(quota_charge(one, 11)); // its own maximum
    assert_true(quota_charge(two, 50));
    assert_false(quota_charge(two, 1)); // that of all, and nothing stays charged
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

static void without_a_quota_nothing_is_counted(void **state)
{
    (void)state;
    struct blob *b = blob_copy("x", 1, NULL);
    assert_true(blob_reserve(b, 1 << 20));
    blob_unref(b);
    assert_true(quota_charge(NULL, SIZE_MAX));
    assert_int_equal(quota_used(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_charge_counts_in_every_quota_above),
        cmocka_unit_test(a_blob_is_paid_for_until_nobody_holds_it),
        cmocka_unit_test(a_blob_grows_only_as_far_as_the_quota_goes),
        cmocka_unit_test(without_a_quota_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
