// SPDX-License-Identifier: Apache-2.0
#include "common/wire/traceparent.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static void what_the_standard_has_is_taken(void **state)
{
    char out[TRACEPARENT_LEN + 1];
    (void)state;
    assert_true(traceparent_valid("00-" TRACE "-" PARENT "-01", TRACEPARENT_LEN));
    assert_true(traceparent_valid("00-" TRACE "-" PARENT "-00", TRACEPARENT_LEN));
    traceparent_copy(out, "cc-" TRACE "-" PARENT "-01-what-comes", TRACEPARENT_LEN + 11);
    assert_string_equal(out, "cc-" TRACE "-" PARENT "-01");
}

static void what_it_forbids_is_not_there(void **state)
{
    static const char *const bad[] = {
        "",
        "00-" TRACE "-" PARENT "-0",
        "00-" TRACE "-" PARENT "-01-",
        "00-" TRACE "-" PARENT "-01-more",
        "cc-" TRACE "-" PARENT "-01.more",
        "ff-" TRACE "-" PARENT "-01",
        "0x-" TRACE "-" PARENT "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00_" TRACE "-" PARENT "-01",
        "00-" TRACE "_" PARENT "-01",
        "00-" TRACE "-" PARENT "_01",
        "00-" TRACE "-" PARENT "-0g",
    };
    char out[TRACEPARENT_LEN + 1];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (traceparent_valid(bad[i], strlen(bad[i])))
            fail_msg("taken: %s", bad[i]);
        traceparent_copy(out, bad[i], strlen(bad[i]));
        assert_string_equal(out, "");
    }
    traceparent_copy(out, NULL, 0);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_standard_has_is_taken),
        cmocka_unit_test(what_it_forbids_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
