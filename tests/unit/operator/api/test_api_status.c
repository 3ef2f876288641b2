// SPDX-License-Identifier: Apache-2.0
#include "operator/api/status.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void a_status_is_read(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct api_status s;
    const char *json =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
        "\"slow down\",\"reason\":\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":7},\"code\":429}";
    api_status_decode(json, strlen(json), &a, &s);
    assert_int_equal(s.code, 429);
    assert_string_equal(s.reason, "TooManyRequests");
    assert_string_equal(s.message, "slow down");
    assert_int_equal(s.retry_after_s, 7);
    arena_done(&a);
}

static void what_is_no_status_becomes_the_message(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct api_status s;
    const char *texts[] = {"<html>\n<b>502</b>", "", "{\"kind\":\"Status\",\"code\":\"x\"}", "{\"message\":\"m\"}"};
    const char *want[] = {"<html> <b>502</b>", "", "{\"kind\":\"Status\",\"code\":\"x\"}", "{\"message\":\"m\"}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        api_status_decode(texts[i], strlen(texts[i]), &a, &s);
        assert_string_equal(s.message, want[i]);
        assert_int_equal(s.code, 0);
        assert_null(s.reason);
    }
    char page[1000];
    memset(page, 'x', sizeof page);
    api_status_decode(page, sizeof page, &a, &s);
    assert_int_equal(strlen(s.message), 200);
    arena_done(&a);
}

static void answers_become_our_codes(void **state)
{
    (void)state;
    const struct {
        int http;
        const char *reason;
        int code;
    } cases[] = {
        {200, "", 0},
        {201, "", 0},
        {400, "BadRequest", ERR_INVALID},
        {401, "Unauthorized", ERR_UNAUTHORIZED},
        {403, "Forbidden", ERR_FORBIDDEN},
        {404, "NotFound", ERR_NOT_FOUND},
        {405, "MethodNotAllowed", ERR_INVALID},
        {408, "Timeout", ERR_TIMEOUT},
        {409, "AlreadyExists", ERR_EXISTS},
        {409, "Conflict", ERR_CONFLICT},
        {410, "Expired", ERR_GONE},
        {410, "Gone", ERR_GONE},
        {413, "RequestEntityTooLarge", ERR_INVALID},
        {422, "Invalid", ERR_INVALID},
        {429, "TooManyRequests", ERR_THROTTLED},
        {500, "InternalError", ERR_UNAVAILABLE},
        {502, "", ERR_UNAVAILABLE},
        {503, "ServiceUnavailable", ERR_UNAVAILABLE},
        {504, "Timeout", ERR_TIMEOUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char json[256];
        struct err err = ERR_INIT;
        snprintf(json, sizeof json, "{\"kind\":\"Status\",\"reason\":\"%s\",\"message\":\"m\"}", cases[i].reason);
        int r = api_status_err(cases[i].http, json, strlen(json), &err);
        if (r != cases[i].code || err.code != cases[i].code)
            fail_msg("%d %s: %s", cases[i].http, cases[i].reason, err_name(r));
        if (r == 0)
            continue;
        assert_string_equal(err.msg, "m");
        assert_int_equal(err.http_status, cases[i].http);
        assert_int_equal(err.retry_after_ms, 0);
    }
}

static void an_answer_without_words_still_says_something(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(api_status_err(503, "", 0, &err), ERR_UNAVAILABLE);
    assert_string_equal(err.msg, "the API server answered HTTP 503 without a message");
    const char *json = "{\"kind\":\"Status\",\"message\":\"later\",\"details\":{\"retryAfterSeconds\":3}}";
    assert_int_equal(api_status_err(429, json, strlen(json), &err), ERR_THROTTLED);
    assert_int_equal(err.retry_after_ms, 3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_read),
        cmocka_unit_test(what_is_no_status_becomes_the_message),
        cmocka_unit_test(answers_become_our_codes),
        cmocka_unit_test(an_answer_without_words_still_says_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
