// SPDX-License-Identifier: Apache-2.0
#include "common/base/str.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void equality_and_affixes_know_null(void **state)
{
    (void)state;
    assert_true(str_eq(NULL, NULL));
    assert_false(str_eq(NULL, ""));
    assert_true(str_eq("a", "a"));
    assert_true(str_empty(NULL) && str_empty("") && !str_empty("x"));
    assert_true(str_starts("cadre.dev/group", "cadre.dev/"));
    assert_false(str_starts("cadre", "cadre.dev/") || str_starts(NULL, "c"));
    assert_true(str_cmp(NULL, "") < 0 && str_cmp("", NULL) > 0 && str_cmp(NULL, NULL) == 0 && str_cmp("a", "b") < 0);
}

static void bytes_are_two_digits_each(void **state)
{
    (void)state;
    char out[7];
    assert_string_equal(str_hex("\x00\x9f\xff", 3, out), "009fff");
    assert_string_equal(str_hex("", 0, out), "");
}

static void numbers_in_names_compare_as_numbers(void **state)
{
    (void)state;
    static const char *const sorted[] = {NULL,
                                         "",
                                         "a",
                                         "a-0",
                                         "a-2-1",
                                         "a-2-9",
                                         "a-2-10",
                                         "a-10-1",
                                         "a1b",
                                         "a01c",
                                         "b",
                                         "n2",
                                         "n10",
                                         "n18446744073709551617",
                                         "n18446744073709551618"};
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++)
        for (size_t j = 0; j < sizeof sorted / sizeof *sorted; j++) {
            int r = str_cmp_natural(sorted[i], sorted[j]);
            assert_int_equal((r > 0) - (r < 0), (i > j) - (i < j));
        }
    assert_int_not_equal(str_cmp_natural("n1", "n01"), 0); // equal numbers, different names: still an order
    assert_true((str_cmp_natural("n1", "n01") < 0) == (str_cmp_natural("n01", "n1") > 0));
}

static void natural_order_is_total(void **state)
{
    (void)state;
    struct rand r;
    rand_seed(&r, 7);
    char names[24][6];
    for (size_t i = 0; i < 24; i++)
        for (size_t k = 0; k < 6; k++)
            names[i][k] = k == 5 ? '\0' : "0019a-\0"[rand_below(&r, 7)];
    for (size_t i = 0; i < 24; i++)
        for (size_t j = 0; j < 24; j++) {
            int ij = str_cmp_natural(names[i], names[j]);
            assert_true((ij == 0) == (strcmp(names[i], names[j]) == 0));
            assert_true((ij < 0) == (str_cmp_natural(names[j], names[i]) > 0));
            for (size_t k = 0; k < 24; k++)
                if (ij < 0 && str_cmp_natural(names[j], names[k]) < 0)
                    assert_true(str_cmp_natural(names[i], names[k]) < 0);
        }
}

static void integers_are_whole_and_in_range(void **state)
{
    (void)state;
    int64_t v = 0;
    assert_true(str_to_i64("9223372036854775807", &v) && v == INT64_MAX);
    assert_true(str_to_i64("-9223372036854775808", &v) && v == INT64_MIN);
    assert_true(str_to_i64("007", &v) && v == 7);
    static const char *const bad[] = {NULL, "", " 1", "+1", "1 ", "1.0", "0x1", "-", "--1", "9223372036854775808", "a"};
    v = 5;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(str_to_i64(bad[i], &v));
    assert_int_equal(v, 5);
}

static void utf8_follows_rfc_3629(void **state)
{
    (void)state;
    static const char *const good[] = {
        "", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3",
                                      "\xe2\x82",
                                      "a\xf0\x9f\x98"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(str_utf8_valid(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(str_utf8_valid(bad[i], strlen(bad[i])));
}

static void the_hash_never_changes(void **state)
{
    (void)state;
    assert_true(str_hash("", 0) == 0xcbf29ce484222325u); // the published vectors of FNV-1a
    assert_true(str_hash("foobar", 6) == 0x85944171f73967e8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equality_and_affixes_know_null),  cmocka_unit_test(numbers_in_names_compare_as_numbers),
        cmocka_unit_test(bytes_are_two_digits_each),       cmocka_unit_test(natural_order_is_total),
        cmocka_unit_test(integers_are_whole_and_in_range), cmocka_unit_test(utf8_follows_rfc_3629),
        cmocka_unit_test(the_hash_never_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
