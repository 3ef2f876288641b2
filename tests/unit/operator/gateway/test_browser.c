// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/browser.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int checked(bool plain, const char *host, const char *origin)
{
    struct err err = ERR_INIT;
    return browser_check(plain, host, origin, &err);
}

static void test_a_program_names_an_address_of_this_machine(void **state)
{
    static const char *const good[] = {"127.0.0.1", "127.0.0.1:80", "[::1]:8080", "[::1]", "localhost:1", "LOCALHOST"};
    static const char *const bad[] = {"",           "evil.example",   "evil.example:80", "127.0.0.1.evil.example",
                                      "localhost.", "127.0.0.1:x",    "127.0.0.1:",      "[::1",
                                      "[::1]x",     "[evil.example]", "127.0.0.1@evil",  "1"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_int_equal(checked(true, good[i], NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (checked(true, bad[i], NULL) != ERR_FORBIDDEN)
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(checked(true, NULL, NULL), ERR_FORBIDDEN);
    // The certificate proves the name.
    assert_int_equal(checked(false, "cadre-operator.cadre-system.svc:9443", NULL), 0);
}

static void test_a_foreign_web_site_is_refused(void **state)
{
    (void)state;
    assert_int_equal(checked(true, "127.0.0.1:80", "http://127.0.0.1:80"), 0);
    assert_int_equal(checked(false, "Operator:9443", "https://operator:9443"), 0);
    assert_int_equal(checked(true, "127.0.0.1:80", "http://127.0.0.1:81"), ERR_FORBIDDEN);
    assert_int_equal(checked(true, "127.0.0.1:80", "https://evil.example"), ERR_FORBIDDEN);
    assert_int_equal(checked(false, NULL, "https://evil.example"), ERR_FORBIDDEN);
    assert_int_equal(checked(false, "x", "null"), ERR_FORBIDDEN);
    assert_int_equal(checked(false, "x", ""), ERR_FORBIDDEN);
}

static void test_a_post_says_that_it_is_json(void **state)
{
    static const char *const bad[] = {NULL,
                                      "",
                                      "text/plain",
                                      "application/x-www-form-urlencoded",
                                      "application/jsonp",
                                      "text/plain; application/json"};
    struct err err = ERR_INIT;
    (void)state;
    assert_int_equal(browser_check_type("application/json", &err), 0);
    assert_int_equal(browser_check_type("Application/JSON; charset=utf-8", &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(browser_check_type(bad[i], &err), ERR_INVALID);
        assert_int_equal(err.http_status, 415);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_program_names_an_address_of_this_machine),
        cmocka_unit_test(test_a_foreign_web_site_is_refused),
        cmocka_unit_test(test_a_post_says_that_it_is_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
