// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_grammar.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

// Writes the token, and what the grammar says about it.
static void put_token(struct buf *b, const struct json_grammar *g, enum json_token t)
{
    if (t == JSON_NAME)
        buf_printf(b, "N%zu%s ", g->len, g->escaped ? "e" : "");
    else if (t == JSON_SCALAR)
        buf_printf(b, "%s%zu%s ", json_type_name(g->type), g->len, g->type == JSON_STRING && g->escaped ? "e" : "");
    else if (t == JSON_OPEN)
        buf_printf(b, "%s( ", json_type_name(g->type));
    else
        buf_printf(b, ")%d ", g->depth);
}

// Each part has memory of exactly its size, so a sanitizer sees a read after it. Returns the offset of the wrong byte,
// or the length if no byte is wrong.
static size_t feed(struct json_grammar *g, const char *text, size_t len, size_t first, size_t part, struct buf *b)
{
    for (size_t at = 0, n = first; at < len; n = part) {
        n = MIN(n, len - at);
        char *bytes = xmalloc(n);
        memcpy(bytes, text + at, n);
        const char *p = bytes;
        enum json_token t;
        while ((t = json_grammar_next(g, &p, bytes + n)) > JSON_WRONG)
            put_token(b, g, t);
        at += (size_t)(p - bytes);
        free(bytes);
        if (t == JSON_WRONG)
            return at;
    }
    return len;
}

static void reads_as(const char *text, const char *want)
{
    size_t len = strlen(text);
    for (size_t first = 1; first <= len; first++) {
        for (size_t part = 1; part <= len; part += len - 1 ? len - 1 : 1) {
            struct json_grammar g = {0};
            struct buf b = BUF_INIT(4096);
            assert_int_equal(feed(&g, text, len, first, part, &b), len);
            assert_true(json_grammar_ends(&g));
            assert_string_equal(buf_str(&b), want);
            buf_done(&b);
        }
    }
}

static void tokens_are_the_same_wherever_the_bytes_are_cut(void **state)
{
    (void)state;
    reads_as("[ ]", "list( )0 ");
    reads_as("\"\\u00e9\xc3\xa9\"", "string10e ");
    reads_as("{\"a\":1,\"b\\n\" : [ true,null ] ,\"c\":{}}",
             "object( N3 number1 N5e list( boolean4 null4 )1 N3 object( )1 )0 ");
    reads_as("[-1.50e+07,0,\"\\ud83d\\ude00\\\"x\",\"\xf0\x9f\x98\x80 and more\", false ]",
             "list( number9 number1 string17e string15 boolean5 )0 ");
}

static void a_number_ends_with_the_text(void **state)
{
    (void)state;
    struct json_grammar g = {0};
    struct buf b = BUF_INIT(4096);
    feed(&g, "-12", 3, 1, 2, &b);
    assert_int_equal(b.len, 0);
    assert_true(json_grammar_ends(&g));
    assert_int_equal(g.len, 3);
    assert_int_equal(g.type, JSON_NUMBER);
    buf_done(&b);
}

static void nul_is_for_values_only(void **state)
{
    static const struct {
        const char *text;
        size_t wrong, wrong_of_values;
    } cases[] = {
        {"{\"a\":\"\\u0000\"}", 11, 14},
        {"{\"\\u0000\":1}", 7, 7},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        for (int nuls = 0; nuls < 2; nuls++) {
            struct json_grammar g = {.nuls = nuls};
            struct buf b = BUF_INIT(4096);
            size_t at = feed(&g, cases[i].text, strlen(cases[i].text), 3, 1, &b);
            assert_int_equal(at, nuls ? cases[i].wrong_of_values : cases[i].wrong);
            buf_done(&b);
        }
    }
}

static void what_the_caller_skips_is_a_value(void **state)
{
    (void)state;
    static const char text[] = "{\"a\":[?],\"b\":2}";
    struct json_grammar g = {0};
    struct buf b = BUF_INIT(4096);
    feed(&g, text, 6, 6, 1, &b);
    json_grammar_leave(&g);
    feed(&g, text + 8, strlen(text) - 8, 1, 1, &b);
    assert_true(json_grammar_ends(&g));
    assert_string_equal(buf_str(&b), "object( N3 list( N3 number1 )0 ");
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_are_the_same_wherever_the_bytes_are_cut),
        cmocka_unit_test(a_number_ends_with_the_text),
        cmocka_unit_test(nul_is_for_values_only),
        cmocka_unit_test(what_the_caller_skips_is_a_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
