// SPDX-License-Identifier: Apache-2.0
#include "common/base/duration.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void a_duration_is_a_sequence_of_numbers_with_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"30s", 30000},
                 {"1m30s", 90000},
                 {"500ms", 500},
                 {"2h", 7200000},
                 {"168h", DURATION_MAX_MS},
                 {"0s", 0},
                 {"604800000ms", DURATION_MAX_MS}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        assert_true(duration_parse(cases[i].text, &ms));
        assert_int_equal(ms, cases[i].ms);
    }
}

static void anything_else_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "45",
                                        "5x",
                                        "s",
                                        "-5s",
                                        "1m-5s",
                                        "1.5s",
                                        ".5h",
                                        "+5s",
                                        "5us",
                                        "1 h",
                                        "15s ",
                                        "99999999s",
                                        "169h",
                                        "604800001ms",
                                        "168h1ms",
                                        "99999999999999999999h"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        int64_t ms;
        if (duration_parse(wrong[i], &ms))
            fail_msg("%s", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_duration_is_a_sequence_of_numbers_with_units),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
