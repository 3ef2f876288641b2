// SPDX-License-Identifier: Apache-2.0
#include "common/base/rfc3339.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void times_are_read(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-01-02T03:04:05Z", INT64_C(1767323045000)},
        {"2026-01-02T03:04:05.678901Z", INT64_C(1767323045678)},
        {"2026-01-02T03:04:05.6Z", INT64_C(1767323045600)},
        {"2026-01-02T03:04:05.678901234Z", INT64_C(1767323045678)},
        {"2026-01-02T05:34:05+02:30", INT64_C(1767323045000)},
        {"2026-01-01T22:04:05-05:00", INT64_C(1767323045000)},
        {"2024-02-29T12:00:00Z", INT64_C(1709208000000)},
        {"2000-02-29t00:00:00z", INT64_C(951782400000)},
        {"1969-12-31T23:59:59Z", -1000},
        {"0001-01-01T00:00:00Z", INT64_C(-62135596800000)},
        {"9999-12-31T23:59:59Z", INT64_C(253402300799000)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms = 42;
        if (!rfc3339_parse(cases[i].text, strlen(cases[i].text), &ms) || ms != cases[i].ms)
            fail_msg("%s: %lld", cases[i].text, (long long)ms);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    const char *cases[] = {
        "",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02T03:04:05.Z",
        "2026-13-02T03:04:05Z",
        "2026-00-02T03:04:05Z",
        "2026-02-29T03:04:05Z",
        "1900-02-29T03:04:05Z",
        "2026-01-32T03:04:05Z",
        "2026-01-00T03:04:05Z",
        "2026-01-02T24:04:05Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:61Z",
        "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+0100",
        "2026-01-02T03:04:05+01",
        "0000-01-02T03:04:05Z",
        "26-01-02T03:04:05Z",
        "-026-01-02T03:04:05Z",
        "2026-1-2T03:04:05Z",
        "2026-01-02T03:04",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t ms;
        if (rfc3339_parse(cases[i], strlen(cases[i]), &ms))
            fail_msg("%s", cases[i]);
    }
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct rand rand;
    rand_seed(&rand, 7);
    for (int i = 0; i < 2000; i++) {
        int64_t ms = rand_range(&rand, INT64_C(-62135596800000), INT64_C(253402300799999)), back;
        char text[RFC3339_SIZE];
        rfc3339_format_micro(ms, text);
        assert_true(rfc3339_parse(text, strlen(text), &back));
        assert_int_equal(back, ms);
        rfc3339_format(ms, text);
        assert_true(rfc3339_parse(text, strlen(text), &back));
        assert_int_equal(back, ms - ((ms % 1000 + 1000) % 1000));
    }
}

static void what_cannot_be_written_becomes_the_nearest(void **state)
{
    (void)state;
    char text[RFC3339_SIZE];
    int64_t ms;
    assert_string_equal(rfc3339_format(INT64_MIN, text), "0001-01-01T00:00:00Z");
    assert_string_equal(rfc3339_format_micro(INT64_MAX, text), "9999-12-31T23:59:59.999000Z");
    assert_true(rfc3339_parse("0001-01-01T00:00:00+01:00", 25, &ms)); // an hour before the year 1
    assert_string_equal(rfc3339_format(ms, text), "0001-01-01T00:00:00Z");
    assert_true(rfc3339_parse("0881-01-02T03:04:05Z", 20, &ms));
    assert_string_equal(rfc3339_format(ms, text), "0881-01-02T03:04:05Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(what_cannot_be_written_becomes_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
