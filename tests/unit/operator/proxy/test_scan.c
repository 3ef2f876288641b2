// SPDX-License-Identifier: Apache-2.0
#include "common/wire/scan.h"
#include "operator/proxy/head.h"

#include "common/base/buf.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// "key=value|key=value" or "!" where it is no JSON; read from an allocation of just that size.
static void scans_to(const char *json, const char *want)
{
    struct buf got = BUF_INIT(4096);
    struct scan s;
    struct scan_item item;
    size_t len = strlen(json);
    char *exact = xmalloc(len);
    memcpy(exact, json, len);
    int r = scan_begin(&s, exact, len);
    if (r == 0)
        buf_puts(&got, "none");
    while (r > 0 && (r = scan_next(&s, &item)) > 0) {
        if (got.len)
            buf_putc(&got, '|');
        if (item.key)
            buf_printf(&got, "%.*s=", (int)item.key_len, item.key);
        buf_append(&got, item.text, item.len);
    }
    if (r < 0)
        buf_putc(&got, '!');
    assert_string_equal(buf_str(&got), want);
    buf_done(&got);
    free(exact);
}

static void elements_are_found_without_looking_into_them(void **state)
{
    (void)state;
    scans_to("[1,2]", "1|2");
    scans_to(" [ 1 , -2.5e3 ,true ] ", "1|-2.5e3|true");
    scans_to("[]", "");
    scans_to("[ ]", "");
    scans_to("[[1,2],{\"a\":[3]},\"x,]\"]", "[1,2]|{\"a\":[3]}|\"x,]\"");
    scans_to("[\"a\\\"b\\\\\",\"\"]", "\"a\\\"b\\\\\"|\"\"");
    scans_to("{\"a\":1,\"b\" : [ 1, 2 ] }", "a=1|b=[ 1, 2 ]");
    scans_to("{}", "");
}

static void what_is_no_list_or_object_has_none(void **state)
{
    (void)state;
    scans_to("", "none");
    scans_to("  ", "none");
    scans_to("1", "none");
    scans_to("\"[]\"", "none");
}

static void broken_brackets_strings_and_commas_are_seen(void **state)
{
    (void)state;
    static const char *const broken[] = {"[",     "[1",       "[1,",    "[,1]",    "[1,]",     "[1 2]",   "[1]]",
                                         "[1] x", "[\"a]",    "[\"a\\", "{\"a\"}", "{\"a\":}", "{a:1}",   "{\"a\":1,}",
                                         "{",     "{\"a\":1", "{1:2}",  "[1}",     "[[1}]",    "[{\"a]}", "[[]"};
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct scan s;
        struct scan_item item;
        int r = scan_begin(&s, broken[i], strlen(broken[i]));
        assert_int_equal(r, 1);
        while ((r = scan_next(&s, &item)) > 0)
            ;
        if (r == 0)
            fail_msg("%s was taken for JSON", broken[i]);
    }
    char deep[SCAN_DEPTH_MAX + 3];
    memset(deep, '[', sizeof deep);
    struct scan s;
    struct scan_item item;
    assert_int_equal(scan_begin(&s, deep, sizeof deep), 1);
    assert_true(scan_next(&s, &item) < 0);
}

static void a_head_says_method_group_and_how_long(void **state)
{
    (void)state;
    const char *json = "{\"method\":\"add\", \"group\":\"llama\",\"timeoutMs\":5000,\"attempt\":3,"
                       "\"whenNotReady\":\"Refuse\",\"later\":{\"x\":[1]}}";
    struct head h;
    struct err err = ERR_INIT;
    assert_int_equal(head_decode(json, strlen(json), &h, &err), 0);
    assert_true(head_method_is(&h, "add"));
    assert_false(head_method_is(&h, "ad"));
    assert_int_equal(h.group_len, 5);
    assert_memory_equal(h.group, "llama", 5);
    assert_int_equal(h.timeout_ms, 5000);
    assert_int_equal(h.attempt, 3);
    assert_true(h.refuse);
    json = "{\"method\":\"m\",\"whenNotReady\":\"Wait\"}";
    assert_int_equal(head_decode(json, strlen(json), &h, &err), 0);
    assert_true(!h.group && !h.timeout_ms && !h.attempt && !h.refuse);
}

static void a_bad_head_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } bad[] = {
        {"", "no JSON object"},
        {"[]", "no JSON object"},
        {"{", "not valid JSON at byte 1"},
        {"{}", "no \"method\""},
        {"{\"method\":1}", "\"method\" must be a name"},
        {"{\"method\":\"\"}", "\"method\" must be a name"},
        {"{\"method\":\"a\\u0062\"}", "\"method\" must be a name"},
        {"{\"method\":\"\xc3\xa4\"}", "\"method\" must be a name"},
        {"{\"method\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}", "1 to 63"},
        {"{\"method\":\"a\",\"timeoutMs\":0}", "\"timeoutMs\" must be a whole number from 1"},
        {"{\"method\":\"a\",\"timeoutMs\":-1}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"timeoutMs\":1.5}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"timeoutMs\":99999999999999999999}", "\"timeoutMs\""},
        {"{\"method\":\"a\",\"attempt\":4294967296}", "\"attempt\""},
        {"{\"method\":\"a\",\"whenNotReady\":\"Maybe\"}", "\"Wait\" or \"Refuse\""},
        {"{\"method\":\"a\",\"via\":{}}", "the head of the call: \"via\": must be a list of"},
        {"{\"method\":\"a\",\"via\":[7]}", "\"via\": must be a list of"},
        {"{\"method\":\"a\",\"via\":[\"ml/a/0/f\",tru]}", "\"via\": not valid JSON"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct head h;
        struct err err = ERR_INIT;
        assert_int_equal(head_decode(bad[i].json, strlen(bad[i].json), &h, &err), ERR_INVALID);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("%s: %s", bad[i].json, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_found_without_looking_into_them),
        cmocka_unit_test(what_is_no_list_or_object_has_none),
        cmocka_unit_test(broken_brackets_strings_and_commas_are_seen),
        cmocka_unit_test(a_head_says_method_group_and_how_long),
        cmocka_unit_test(a_bad_head_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
