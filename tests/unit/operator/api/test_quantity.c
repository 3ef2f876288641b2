// SPDX-License-Identifier: Apache-2.0
#include "operator/api/quantity.h"
#include "operator/api/resource.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void reads(const char *text, int64_t want)
{
    int64_t milli = 42;
    struct err err = ERR_INIT;
    if (quantity_parse(text, &milli, &err) < 0 || milli != want)
        fail_msg("%s: %" PRId64 ", not %" PRId64 " %s", text, milli, want, err.msg);
}

// The forms of https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
static void every_unit_is_read(void **state)
{
    (void)state;
    reads("0", 0);
    reads("1", 1000);
    reads("+1", 1000);
    reads("-1", -1000);
    reads("1.", 1000);
    reads(".5", 500);
    reads("0.5", 500);
    reads("001.500", 1500);
    reads("1000000000n", 1000);
    reads("1000000u", 1000);
    reads("500m", 500);
    reads("1.5m", 2);
    reads("2k", 2000000);
    reads("3M", INT64_C(3000000000));
    reads("4G", INT64_C(4000000000000));
    reads("5T", INT64_C(5000000000000000));
    reads("6P", INT64_C(6000000000000000000));
    reads("1Ki", INT64_C(1024000));
    reads("1.5Ki", INT64_C(1536000));
    reads("1Mi", INT64_C(1048576000));
    reads("1.5Gi", INT64_C(1610612736000));
    reads("1Ti", INT64_C(1099511627776000));
    reads("2Pi", INT64_C(2251799813685248000));
    reads("0.001Ei", INT64_C(1152921504606846976)); // 1.024 * 10^15 * 1.125899906842624
    reads("2e3", 2000000);
    reads("2E3", 2000000);
    reads("2e+3", 2000000);
    reads("25e-1", 2500);
    reads("1E", INT64_MAX);
    reads("1e18", INT64_MAX);
}

static void below_a_thousandth_it_rounds_away_from_zero(void **state)
{
    (void)state;
    reads("0.1m", 1);
    reads("0.0001", 1);
    reads("1n", 1);
    reads("1u", 1);
    reads("999u", 1);
    reads("1000u", 1);
    reads("1001u", 2);
    reads("-1n", -1);
    reads("1e-3", 1);
    reads("1e-400", 1);
    reads("0e-400", 0);
    reads("0.0005Ki", 512);
    reads("0.00000000000000000000000000000000000001", 1);
    reads("1.00000000000000000000000000000000000001", 1001);
    reads("1.00000000000000000000000000000000000000", 1000);
}

static void many_digits_are_exact_as_long_as_the_value_fits(void **state)
{
    (void)state;
    reads("9223372036854775807m", INT64_MAX);
    reads("9223372036854775806m", INT64_MAX - 1);
    reads("9223372036854775.807", INT64_MAX);
    reads("9223372036854775.8065", INT64_MAX);
    reads("1234567890123456.7891", INT64_C(1234567890123456790));
    reads("1000000000000000000000000n", INT64_C(1000000000000000000));
    reads("00000000000000000000000000000000000000001", 1000);
}

static void what_is_too_large_saturates(void **state)
{
    (void)state;
    reads("9223372036854775808m", INT64_MAX);
    reads("99999999999999999999999999999999999999999999", INT64_MAX);
    reads("-99999999999999999999999999999999999999999999", -INT64_MAX);
    reads("16Ei", INT64_MAX);
    reads("1000000Ei", INT64_MAX);
    reads("9999999999999999999Ei", INT64_MAX);
    reads("10E", INT64_MAX);
    reads("1e99999999999999999999", INT64_MAX);
    reads("0e99999999999999999999", 0);
}

static void what_is_no_quantity_is_refused(void **state)
{
    (void)state;
    const char *cases[] = {"",    ".",   "-",    "+",   "m",   "Ki",  "1 ",   " 1",    "1 Gi", "1gi",
                           "1KI", "1K",  "1mi",  "1Gb", "1e",  "1e+", "1e1.", "1.2.3", "0x10", "1,5",
                           "--1", "1--", "1Kii", "1mm", "Inf", "NaN", "1ee",  "e3",    "one"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t milli;
        struct err err = ERR_INIT;
        if (quantity_parse(cases[i], &milli, &err) != ERR_INVALID)
            fail_msg("\"%s\"", cases[i]);
    }
    int64_t milli;
    struct err err = ERR_INIT;
    assert_int_equal(quantity_parse("4 GPUs", &milli, &err), ERR_INVALID);
    assert_string_equal(err.msg, "\"4 GPUs\" is not a quantity; write a number with or without a unit, like 500m, 4 "
                                 "or 1.5Gi");
}

static void people_read_the_shortest_exact_form(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    int hugepages = resource_id("hugepages-2Mi");
    assert_string_equal(quantity_format(RESOURCE_GPU, 4000, &a), "4");
    assert_string_equal(quantity_format(RESOURCE_GPU, 4000000000, &a), "4000000");
    assert_string_equal(quantity_format(RESOURCE_CPU, 500, &a), "500m");
    assert_string_equal(quantity_format(RESOURCE_CPU, 1500, &a), "1500m");
    assert_string_equal(quantity_format(RESOURCE_CPU, 192000, &a), "192");
    assert_string_equal(quantity_format(RESOURCE_CPU, 0, &a), "0");
    assert_string_equal(quantity_format(RESOURCE_MEMORY, 0, &a), "0");
    assert_string_equal(quantity_format(RESOURCE_MEMORY, INT64_C(1073741824000), &a), "1Gi");
    assert_string_equal(quantity_format(RESOURCE_MEMORY, INT64_C(1610612736000), &a), "1536Mi");
    assert_string_equal(quantity_format(RESOURCE_MEMORY, INT64_C(1000000000000), &a), "1G");
    assert_string_equal(quantity_format(RESOURCE_MEMORY, INT64_C(1001000), &a), "1001");
    assert_string_equal(quantity_format(hugepages, INT64_C(2097152000), &a), "2Mi");
    arena_done(&a);
}

static void formatting_loses_nothing(void **state)
{
    (void)state;
    struct rand rand;
    rand_seed(&rand, 11);
    for (int i = 0; i < 5000; i++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        int64_t back, milli = (int64_t)(rand_u64(&rand) >> (1 + rand_below(&rand, 62)));
        if (rand_below(&rand, 2))
            milli = milli % 1000000 * 1024000;
        const char *text = quantity_format(i % 2 ? RESOURCE_MEMORY : RESOURCE_CPU, milli, &a);
        int r = quantity_parse(text, &back, &err);
        if (r < 0 || back != milli)
            fail_msg("%" PRId64 " became %s", milli, text);
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_read),
        cmocka_unit_test(below_a_thousandth_it_rounds_away_from_zero),
        cmocka_unit_test(many_digits_are_exact_as_long_as_the_value_fits),
        cmocka_unit_test(what_is_too_large_saturates),
        cmocka_unit_test(what_is_no_quantity_is_refused),
        cmocka_unit_test(people_read_the_shortest_exact_form),
        cmocka_unit_test(formatting_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
