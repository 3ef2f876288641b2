// SPDX-License-Identifier: Apache-2.0
#include "common/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void set_fills_code_and_message_and_returns_the_code(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(err_set(&err, ERR_NOT_FOUND, "pod %s/%s", "ml", "a-0"), ERR_NOT_FOUND);
    assert_int_equal(err.code, ERR_NOT_FOUND);
    assert_string_equal(err.msg, "pod ml/a-0");
}

static void set_may_quote_its_own_message(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    err_set(&err, ERR_IO, "reset");
    err_set(&err, ERR_UNAVAILABLE, "gave up: %s", err.msg);
    assert_string_equal(err.msg, "gave up: reset");
}

static void wrap_puts_context_in_front(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    err_set(&err, ERR_IO, "connection reset");
    assert_int_equal(err_wrap(&err, "lease %s", "cadre"), ERR_IO);
    assert_string_equal(err.msg, "lease cadre: connection reset");
}

static void wrap_of_an_error_without_a_message_says_its_text(void **state)
{
    (void)state;
    struct err err = {.code = ERR_GONE};
    err_wrap(&err, "watch");
    assert_string_equal(err.msg, "watch: no longer available");
}

static void wrap_truncates_at_the_end_and_keeps_the_prefix(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char text[sizeof err.msg];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_IO, "%s", text);
    err_wrap(&err, "pod a");
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    assert_memory_equal(err.msg, "pod a: xxx", 10);
    err_wrap(&err, "%s", text); // the prefix alone fills it
    assert_string_equal(err.msg, text);
}

static void every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(err_name(0), "OK");
    assert_string_equal(err_name(ERR_THROTTLED), "THROTTLED");
    assert_string_equal(err_name(-999), "UNKNOWN");
    assert_string_equal(err_text(ERR_TIMEOUT), "deadline passed");
    assert_string_equal(err_text(1), "unknown error");
}

static void only_what_may_pass_by_itself_is_retryable(void **state)
{
    (void)state;
    static const int yes[] = {ERR_IO,           ERR_TIMEOUT,  ERR_THROTTLED, ERR_UNAVAILABLE,
                              ERR_UNAUTHORIZED, ERR_CONFLICT, ERR_INTERNAL};
    static const int no[] = {0, ERR_INVALID, ERR_FORBIDDEN, ERR_NOT_FOUND, ERR_EXISTS, ERR_LIMIT, ERR_CANCELED};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(err_is_retryable(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(err_is_retryable(no[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_fills_code_and_message_and_returns_the_code),
        cmocka_unit_test(set_may_quote_its_own_message),
        cmocka_unit_test(wrap_puts_context_in_front),
        cmocka_unit_test(wrap_of_an_error_without_a_message_says_its_text),
        cmocka_unit_test(wrap_truncates_at_the_end_and_keeps_the_prefix),
        cmocka_unit_test(every_code_has_a_name_and_a_text),
        cmocka_unit_test(only_what_may_pass_by_itself_is_retryable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
