// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/jsonrpc_message.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "tests/unit/operator/proxy/proxy_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct proxy_fixture f;
static struct tenant *tenant;

static int setup(void **state)
{
    (void)state;
    fixture_init(&f, NULL);
    tenant = tenant_get(&f.router, "ml");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tenant_unref(tenant);
    fixture_done(&f);
    return 0;
}

static struct jsonrpc_message begin(const char *text, size_t len)
{
    struct jsonrpc_message m;
    struct blob *b = blob_copy(text, len, NULL);
    jsonrpc_message_begin(&m, b, b->data, len);
    blob_unref(b);
    return m;
}

// Reads it in as many turns as it needs.
static int read_all(struct jsonrpc_message *m, struct err *err)
{
    int r;
    while ((r = jsonrpc_message_read(m, tenant, err)) == 0)
        (void)tenants_next_turn(&f.router);
    return r;
}

static void same(const struct json *got, const struct json *want, int depth)
{
    for (; got && want; got = got->next, want = want->next) {
        assert_int_equal(got->type, want->type);
        assert_int_equal(got->key_len, want->key_len);
        if (want->key)
            assert_memory_equal(got->key, want->key, want->key_len);
        assert_int_equal(got->len, want->len);
        assert_memory_equal(got->text, want->text, want->len);
        if (depth > 0 && (want->len < JSON_LONG || (depth == 2 && want->type == JSON_OBJECT)))
            same(got->child, want->child, depth - 1);
    }
    assert_ptr_equal(got, want);
}

// The tree of the whole text, parsed at once, is the reference.
static void check(const char *text, size_t len)
{
    struct jsonrpc_message m = begin(text, len), whole = {.text = text, .len = len};
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *got, *want;
    assert_int_equal(read_all(&m, &err), 1);
    if (jsonrpc_message_parse(&m, &a, &got, &err) < 0 || jsonrpc_message_parse(&whole, &a, &want, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(got->type, want->type);
    same(got->child, want->child, 2);
    arena_done(&a);
    jsonrpc_message_done(&m);
}

static void put_filler(struct buf *b, struct rand *r, size_t n)
{
    static const char *const items[] = {"[1,2,\"]\"]", "\"a\\\"b\"", "{\"x\":{\"y\":[{}]}}", "-1.5e3", "null"};
    size_t end = b->len + n;
    while (b->len < end)
        buf_printf(b, "%s , ", items[rand_below(r, ARRAY_LEN(items))]);
    buf_printf(b, "0");
}

static void put_value(struct buf *b, struct rand *r, bool may_be_long)
{
    size_t n = may_be_long && rand_below(r, 2) ? JSON_LONG - 40 + rand_below(r, 80) : rand_below(r, 30);
    switch (rand_below(r, 4)) {
    case 0:
        buf_printf(b, "\"");
        for (size_t i = 0; i < n; i++)
            buf_printf(b, rand_below(r, 9) ? "x" : "\\\"");
        buf_printf(b, "\"");
        break;
    case 1:
        buf_printf(b, "[");
        put_filler(b, r, n);
        buf_printf(b, "]");
        break;
    case 2:
        buf_printf(b, "{\"l\" : [");
        put_filler(b, r, n);
        buf_printf(b, "]}");
        break;
    default:
        buf_printf(b, "%u", (unsigned)rand_below(r, 1000));
    }
}

static void put_members(struct buf *b, struct rand *r, int depth)
{
    static const char *const names[] = {"args", "value", "method", "p"};
    size_t n = rand_below(r, 5);
    buf_printf(b, " {");
    for (size_t i = 0; i < n; i++) {
        buf_printf(b, "%s\"%s\" :", i ? " ," : "", names[rand_below(r, ARRAY_LEN(names))]);
        if (depth == 1 && rand_below(r, 3) == 0)
            put_members(b, r, 2);
        else
            put_value(b, r, true);
    }
    buf_printf(b, " } ");
}

static void long_values_are_where_the_parser_finds_them(void **state)
{
    struct rand r;
    (void)state;
    rand_seed(&r, 7);
    for (int i = 0; i < 400; i++) {
        struct buf b = BUF_INIT(1 << 24);
        put_members(&b, &r, 1);
        check(buf_str(&b), b.len);
        buf_done(&b);
    }
}

static void what_is_not_json_says_at_which_byte(void **state)
{
    enum { LEN = 300000 };
    static const size_t wrong[] = {1, 131071, 131072, LEN - 2};
    char *text = xmalloc(LEN);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err err = ERR_INIT;
        char want[64];
        memset(text, ' ', LEN);
        text[0] = '[';
        text[LEN - 1] = ']';
        text[wrong[i]] = '}';
        struct jsonrpc_message m = begin(text, LEN);
        assert_true(read_all(&m, &err) < 0);
        snprintf(want, sizeof want, "not valid JSON at byte %zu, ", wrong[i]);
        assert_ptr_equal(strstr(err.msg, want), err.msg);
        jsonrpc_message_done(&m);
    }
    free(text);
}

static void too_much_beside_the_arguments(void **state)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    (void)state;
    for (int many_long = 0; many_long < 2; many_long++) {
        struct err err = ERR_INIT;
        struct buf b = BUF_INIT(1 << 24);
        for (int i = 0; i < (many_long ? JSON_LONGS_MAX + 1 : 20000); i++)
            buf_printf(&b, "%s\"n%d\":[%*s]", i ? "," : "{", i, many_long ? JSON_LONG : 1, "");
        buf_printf(&b, "}");
        struct jsonrpc_message m = begin(buf_str(&b), b.len);
        assert_int_equal(read_all(&m, &err), 1);
        assert_true(jsonrpc_message_parse(&m, &a, &root, &err) < 0);
        assert_non_null(strstr(err.msg, "too many other values beside its arguments"));
        jsonrpc_message_done(&m);
        buf_done(&b);
    }
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_values_are_where_the_parser_finds_them),
        cmocka_unit_test(what_is_not_json_says_at_which_byte),
        cmocka_unit_test(too_much_beside_the_arguments),
    };
    return cmocka_run_group_tests_name("jsonrpc_message", tests, setup, teardown);
}
