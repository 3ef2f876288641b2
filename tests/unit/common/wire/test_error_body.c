// SPDX-License-Identifier: Apache-2.0
#include "common/wire/error_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct err read_body(const char *body)
{
    struct err err;
    error_body_read(body, strlen(body), &err);
    return err;
}

static void a_code_is_known_by_its_name(void **state)
{
    (void)state;
    struct err err = read_body("{\"code\":\"CONFLICT\",\"message\":\"attempt 2 is over\"}");
    assert_int_equal(err.code, ERR_CONFLICT);
    assert_string_equal(err.msg, "attempt 2 is over");
    assert_int_equal(err.retry_after_ms, 0);
    err = read_body("{\"message\":\"100%s\",\"retryAfterMs\":250,\"code\":\"UNAVAILABLE\"}");
    assert_int_equal(err.code, ERR_UNAVAILABLE);
    assert_string_equal(err.msg, "100%s");
    assert_int_equal(err.retry_after_ms, 250);
}

static void any_other_code_is_an_error_all_the_same(void **state)
{
    (void)state;
    assert_int_equal(read_body("{\"code\":\"FAILED\",\"message\":\"no such file\"}").code, ERR_INTERNAL);
    assert_int_equal(read_body("{\"code\":7}").code, ERR_INTERNAL);
    assert_int_equal(read_body("{}").code, ERR_INTERNAL);
    assert_string_equal(read_body("{\"code\":\"GONE\"}").msg, err_text(ERR_GONE));
    assert_int_equal(read_body("OK").code, ERR_PROTO);
    assert_int_equal(read_body("").code, ERR_PROTO);
    assert_int_equal(read_body("[1]").code, ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_is_known_by_its_name),
        cmocka_unit_test(any_other_code_is_an_error_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
