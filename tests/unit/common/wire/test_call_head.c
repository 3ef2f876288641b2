// SPDX-License-Identifier: Apache-2.0
#include "common/wire/call_head.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_head_says_method_group_and_how_long(void **state)
{
    (void)state;
    const char *json = "{\"method\":\"add\", \"group\":\"llama\",\"timeoutMs\":5000,\"attempt\":3,"
                       "\"whenNotReady\":\"Refuse\",\"later\":{\"x\":[1]}}";
    struct call_head h;
    struct err err = ERR_INIT;
    assert_int_equal(call_head_decode(json, strlen(json), &h, &err), 0);
    assert_true(call_head_method_is(&h, "add"));
    assert_false(call_head_method_is(&h, "ad"));
    assert_int_equal(h.group_len, 5);
    assert_memory_equal(h.group, "llama", 5);
    assert_int_equal(h.timeout_ms, 5000);
    assert_int_equal(h.attempt, 3);
    assert_true(h.refuse);
    json = "{\"method\":\"m\",\"timeoutMs\":604800000}"; // the longest: 7 days
    assert_int_equal(call_head_decode(json, strlen(json), &h, &err), 0);
    assert_int_equal(h.timeout_ms, 604800000);
    json = "{\"method\":\"m\",\"whenNotReady\":\"Wait\"}";
    assert_int_equal(call_head_decode(json, strlen(json), &h, &err), 0);
    assert_true(!h.group && !h.timeout_ms && !h.attempt && !h.refuse);
}

static void a_bad_head_is_refused_by_name(void **state)
{
    (void)state;
    char long_via[20100];
    snprintf(long_via, sizeof long_via, "{\"method\":\"a\",\"via\":[\"%20000s\"]}", "ml/a/0/f");
    const struct {
        const char *json, *says;
    } bad[] = {
        {"", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"{", "not valid JSON at byte 1"},
        {"{}", "no \"method\""},
        {"{\"method\":1}", "\"method\" must be a name"},
        {"{\"method\":\"\"}", "\"method\" must be a name"},
        {"{\"method\":\"a\\u0062\"}", "\"method\" must be a name"},
        {"{\"method\":\"\xc3\xa4\"}", "\"method\" must be a name"},
        {"{\"method\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}", "1 to 63"},
        {"{\"method\":\"a\",\"timeoutMs\":0}", "\"timeoutMs\" must be a whole number from 1"},
        {"{\"method\":\"a\",\"timeoutMs\":604800001}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"timeoutMs\":-1}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"timeoutMs\":1.5}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"timeoutMs\":99999999999999999999}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"attempt\":4294967296}", "\"attempt\""},
        {"{\"method\":\"a\",\"whenNotReady\":\"Maybe\"}", "\"Wait\" or \"Refuse\""},
        {"{\"method\":\"a\",\"via\":{}}", "the head of the call: \"via\": must be a list of"},
        {long_via, "the head of the call: \"via\" has 20004 bytes; at most 16384"},
        {"{\"method\":\"a\",\"via\":[7]}", "\"via\": must be a list of"},
        {"{\"method\":\"a\",\"via\":[\"ml/a/0/f\",tru]}", "\"via\": not valid JSON"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct call_head h;
        struct err err = ERR_INIT;
        assert_int_equal(call_head_decode(bad[i].json, strlen(bad[i].json), &h, &err), ERR_INVALID);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("%s: %s", bad[i].json, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_says_method_group_and_how_long),
        cmocka_unit_test(a_bad_head_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
