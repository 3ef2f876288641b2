// SPDX-License-Identifier: Apache-2.0
// Which first lines of a request are taken.
#include "common/wire/request_line.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void each_is(const char *const *lines, size_t n, enum request_line want)
{
    for (size_t i = 0; i < n; i++)
        if (request_line_check(lines[i], strlen(lines[i])) != want)
            fail_msg("%s", lines[i]);
}

static void a_path_of_plain_segments_is_good(void **state)
{
    static const char *const lines[] = {
        "GET / HTTP/1.1\r\n",
        "GET /v1/connect HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /v1/namespaces/ml/workergroups/a-1 HTTP/1.1\n",
        "GET /v1/namespaces/ml/ HTTP/1.1\r\n",
        "GET /.well-known/a..b/...c HTTP/1.1\r\n",
        "GET /healthz?x=%2f../..//& HTTP/1.1\r\n", // what follows is not the path
    };
    (void)state;
    each_is(lines, ARRAY_LEN(lines), REQUEST_LINE_GOOD);
}

static void a_path_that_can_be_read_in_two_ways_is_bad(void **state)
{
    static const char *const lines[] = {
        "GET /a%2f..%2fb HTTP/1.1\r\n", "GET /%61 HTTP/1.1\r\n",      "GET /a/../b HTTP/1.1\r\n",
        "GET /.. HTTP/1.1\r\n",         "GET /a/.. HTTP/1.1\r\n",     "GET /a/./b HTTP/1.1\r\n",
        "GET /a/. HTTP/1.1\r\n",        "GET /a/..?x HTTP/1.1\r\n",   "GET //a HTTP/1.1\r\n",
        "GET /a//b HTTP/1.1\r\n",       "GET /a\\..\\b HTTP/1.1\r\n", "GET /a;x/b HTTP/1.1\r\n",
        "GET /\xc3\xa9 HTTP/1.1\r\n",   "GET /a\tb HTTP/1.1\r\n",
    };
    (void)state;
    each_is(lines, ARRAY_LEN(lines), REQUEST_LINE_BAD);
}

static void what_is_no_first_line_is_bad(void **state)
{
    static const char *const lines[] = {
        "\r\nGET / HTTP/1.1\r\n",     " / HTTP/1.1\r\n",    "GET\r\n", "GET /\r\n", "GET  / HTTP/1.1\r\n",
        "GET http://h/ HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n", "\n",
    };
    (void)state;
    each_is(lines, ARRAY_LEN(lines), REQUEST_LINE_BAD);
}

static void more_is_awaited_up_to_a_bound(void **state)
{
    static char text[REQUEST_LINE_MAX];
    static const char *const lines[] = {"", "G", "GET /a%2f", "GET / HTTP/1.1\r"};
    (void)state;
    each_is(lines, ARRAY_LEN(lines), REQUEST_LINE_MORE);
    memset(text, 'x', sizeof text);
    assert_int_equal(request_line_check(text, sizeof text - 1), REQUEST_LINE_MORE);
    assert_int_equal(request_line_check(text, sizeof text), REQUEST_LINE_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_of_plain_segments_is_good),
        cmocka_unit_test(a_path_that_can_be_read_in_two_ways_is_bad),
        cmocka_unit_test(what_is_no_first_line_is_bad),
        cmocka_unit_test(more_is_awaited_up_to_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
