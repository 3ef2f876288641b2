// SPDX-License-Identifier: Apache-2.0
#include "common/base/last_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void says(const char *text, const char *want)
{
    struct arena a = ARENA_INIT;
    assert_string_equal(last_line(text, &a), want);
    arena_done(&a);
}

static void the_last_line_that_says_something_counts(void **state)
{
    (void)state;
    says(NULL, "");
    says("", "");
    says(" \n\t\n", "");
    says("one", "one");
    says("one\ntwo\n\n  \n", "two");
    says("Traceback:\n  File \"x.py\"\nValueError: no\tsuch thing\r\n", "ValueError: no such thing");
}

static void a_long_line_is_cut_between_characters(void **state)
{
    struct arena a = ARENA_INIT;
    char text[300];
    (void)state;
    memset(text, 'x', 199);
    snprintf(text + 199, sizeof text - 199, "\xc3\xbc and more of it");
    const char *line = last_line(text, &a);
    assert_int_equal(strlen(line), 199 + 3);
    assert_string_equal(line + 199, "...");
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_that_says_something_counts),
        cmocka_unit_test(a_long_line_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
