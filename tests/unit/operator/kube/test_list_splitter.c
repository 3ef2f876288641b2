// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/list_splitter.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20, SMALL = 64 };

static int put_item(void *ctx, const char *item, size_t len, bool whole, struct err *err)
{
    (void)err;
    return buf_printf(ctx, "%.*s%s|", (int)len, item, whole ? "" : "...");
}

static int refuse_item(void *ctx, const char *item, size_t len, bool whole, struct err *err)
{
    (void)item, (void)len, (void)whole;
    ++*(int *)ctx;
    return err_set(err, ERR_INVALID, "no more");
}

static char *list_items(const char *in, size_t len, size_t cut, size_t max_item)
{
    struct list_splitter *s = list_splitter_new(max_item);
    struct buf out = BUF_INIT(OUT_MAX);
    struct err err = ERR_INIT;
    const char *version = NULL, *token = NULL;
    int r = 0;
    if (cut <= len) {
        r = list_splitter_feed(s, in, cut, put_item, &out, &err);
        if (r == 0)
            r = list_splitter_feed(s, in + cut, len - cut, put_item, &out, &err);
    } else {
        for (size_t i = 0; i < len && r == 0; i++)
            r = list_splitter_feed(s, in + i, 1, put_item, &out, &err);
    }
    if (r == 0)
        r = list_splitter_end(s, &version, &token, &err);
    if (r == 0)
        (void)buf_printf(&out, " %s %s", version, token);
    else
        (void)buf_printf(&out, " %s: %s", err_name(r), err.msg);
    list_splitter_free(s);
    return buf_take(&out);
}

static void assert_list(const char *in, const char *want)
{
    size_t len = strlen(in);
    for (size_t cut = 0; cut <= len + 1; cut++) {
        _cleanup_(free_p) char *got = list_items(in, len, cut, SMALL);
        if (strcmp(got, want) != 0)
            fail_msg("cut at %zu: \"%s\" is not \"%s\"", cut, got, want);
    }
}

static void a_list_is_handed_out_item_by_item(void **state)
{
    (void)state;
    assert_list(
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"12\",\"continue\":\"ab=\","
        "\"remainingItemCount\":7},\"items\":[{\"a\":1},{\"b\":[{}]}]}\n",
        "{\"a\":1}|{\"b\":[{}]}| 12 ab=");
    assert_list("{\"metadata\":{\"resourceVersion\":\"12\"},\"items\":[]}", " 12 ");
}

static void members_may_stand_in_any_order_with_any_blanks(void **state)
{
    (void)state;
    assert_list(
        " \n{ \"items\" : [ { \"a\" : \" ] } \" } , {\"b\":\"\\\"]}\"} ] ,\t\"extra\" : [ 1 , true , null , -2.5e3 ] , "
        "\"metadata\" : { \"continue\" : \"\" , \"x\" : { \"resourceVersion\" : \"no\" } , "
        "\"resourceVersion\" : \"9\" } , \"kind\" : \"X\" } \r\n",
        "{ \"a\" : \" ] } \" }|{\"b\":\"\\\"]}\"}| 9 ");
}

static void the_same_keys_inside_items_mean_nothing(void **state)
{
    (void)state;
    assert_list("{\"other\":{\"items\":[{\"z\":0}],\"metadata\":{\"resourceVersion\":\"1\"}},"
                "\"items\":[{\"metadata\":{\"resourceVersion\":\"2\"},\"items\":[{}]}],"
                "\"metadata\":{\"resourceVersion\":\"3\",\"items\":[{}],\"metadata\":{\"continue\":\"no\"}}}",
                "{\"metadata\":{\"resourceVersion\":\"2\"},\"items\":[{}]}| 3 ");
}

static void items_may_be_null(void **state)
{
    (void)state;
    assert_list("{\"metadata\":{\"resourceVersion\":\"3\",\"continue\":null},\"items\":null}", " 3 ");
}

static void what_is_no_whole_list_is_refused(void **state)
{
    (void)state;
    const char *const frame = " PROTO: the list is not in the API server's format: ";
    const struct {
        const char *in, *want;
    } cases[] = {
        {"", NULL},
        {"{", NULL},
        {"{\"metadata\":{\"resourceVersion\":\"3\"},\"items\":[", NULL},
        {"{\"metadata\":{\"resourceVersion\":\"3\"},\"items\":[]", NULL},
        {"[]", "it is not a JSON object"},
        {"<html>", "it is not a JSON object"},
        {"{\"kind\":\"Status\"}", "it has no items"},
        {"{\"items\":[]}", "it has no metadata.resourceVersion"},
        {"{\"metadata\":null,\"items\":[]}", "it has no metadata.resourceVersion"},
        {"{\"metadata\":{\"resourceVersion\":\"\"},\"items\":[]}", "it has no metadata.resourceVersion"},
        {"{\"metadata\":{\"resourceVersion\":3}", "metadata.resourceVersion or continue is not a string"},
        {"{\"metadata\":{\"resourceVersion\":\"\\u0033\"}", "an escape in metadata.resourceVersion or continue"},
        {"{\"items\":{}}", "items is not an array"},
        {"{\"items\":[1]}", "an item is not an object"},
        {"{\"items\":[null]}", "an item is not an object"},
        {"{\"items\":[,]}", "an item is not an object"},
        {"{\"items\":[{}{}]}", "a comma is missing"},
        {"{\"items\":[}", "an item is not an object"},
        {"{\"items\" []}", "a colon is missing"},
        {"{items:[]}", "a key is missing"},
        {"{\"a\":1,}", "a key is missing"},
        {"{\"a\":}", "a value is missing"},
        {"{\"a\":1 2}", "a comma is missing"},
        {"{}{}", "something follows its end"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        _cleanup_(free_p) char *want =
            cases[i].want ? xasprintf("%s%s", frame, cases[i].want) : xstrdup(" PROTO: the list ends in the middle");
        size_t len = strlen(cases[i].in);
        for (size_t cut = 0; cut <= len + 1; cut++) {
            _cleanup_(free_p) char *got = list_items(cases[i].in, len, cut, 0);
            const char *error = strstr(got, " PROTO");
            assert_string_equal(error ? error : got, want);
        }
    }
}

static void of_an_item_over_the_cap_the_beginning_is_handed_out_however_it_comes(void **state)
{
    (void)state;
    for (int size = SMALL - 1; size <= SMALL + 2; size++) {
        char in[256], item[2 * SMALL], want[2 * SMALL];
        snprintf(item, sizeof item, "{\"%*s\"}", size - 4, "");
        snprintf(in, sizeof in, "{\"items\":[%s,{}],\"metadata\":{\"resourceVersion\":\"1\"}}", item);
        snprintf(want, sizeof want, "%.*s%s|{}| 1 ", (int)SMALL, item, size > SMALL ? "..." : "");
        assert_list(in, want);
    }
}

static void a_continue_token_has_a_limit_too(void **state)
{
    (void)state;
    enum { LONG = 20000 };
    struct buf in = BUF_INIT(OUT_MAX);
    (void)buf_puts(&in, "{\"metadata\":{\"continue\":\"");
    for (int i = 0; i < LONG; i++)
        (void)buf_putc(&in, 'a');
    (void)buf_puts(&in, "\",\"resourceVersion\":\"1\"},\"items\":[]}");
    _cleanup_(free_p) char *got = list_items(in.data, in.len, in.len, 0);
    assert_string_equal(got, " LIMIT: a resourceVersion or continue token is longer than 16384 bytes");
    buf_done(&in);
}

static void an_error_of_the_item_callback_stops_it(void **state)
{
    (void)state;
    struct list_splitter *s = list_splitter_new(0);
    struct err err = ERR_INIT;
    int items = 0;
    const char *in = "{\"items\":[{},{}]}";
    assert_int_equal(list_splitter_feed(s, in, strlen(in), refuse_item, &items, &err), ERR_INVALID);
    assert_int_equal(items, 1);
    list_splitter_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_handed_out_item_by_item),
        cmocka_unit_test(members_may_stand_in_any_order_with_any_blanks),
        cmocka_unit_test(the_same_keys_inside_items_mean_nothing),
        cmocka_unit_test(items_may_be_null),
        cmocka_unit_test(what_is_no_whole_list_is_refused),
        cmocka_unit_test(of_an_item_over_the_cap_the_beginning_is_handed_out_however_it_comes),
        cmocka_unit_test(a_continue_token_has_a_limit_too),
        cmocka_unit_test(an_error_of_the_item_callback_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
