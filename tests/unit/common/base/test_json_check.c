// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_check.h"

#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

// Feeds the text in parts of at most `part` bytes.
static bool checks(const char *text, size_t len, size_t part)
{
    struct json_check s = {0};
    for (size_t at = 0; at < len; at += part)
        if (!json_check_feed(&s, text + at, MIN(part, len - at)))
            return false;
    return json_check_ends(&s);
}

static bool parses(const char *text, size_t len)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    bool good = json_parse(text, len, NULL, &a, &root, &err) == 0;
    arena_done(&a);
    return good;
}

// The check and the reader give the same verdict, wherever the text is cut.
static void both_say(const char *text, bool good)
{
    size_t len = strlen(text);
    for (size_t part = 1; part < 5; part++)
        if (checks(text, len, part) != good)
            fail_msg("the check in parts of %zu: %s", part, text);
    if (checks(text, len, len + 1) != good || parses(text, len) != good)
        fail_msg("%s", text);
}

static void whole_documents_pass(void **state)
{
    static const char *const good[] = {
        "0",
        "-0",
        "10.50",
        "1e5",
        "-1.5E-07",
        "true",
        "false",
        " null ",
        "\"\"",
        "[]",
        "{ }",
        "[1 , [ ],{}]",
        "{\"a\" : {\"b\":[0]}}",
        "\"\\u0001\\ud83d\\ude00\\n\"",
        "\"\xc3\xa9\xf4\x8f\xbf\xbf\"",
        "-0.0e-0",
        "1E400",
        "[1\n,\t2\r]",
        "[[],[[]],{\"\":{}},[{}]]",
        "\"\x7f\\u2028\\uDBFF\\uDFFF\\ue000\"",
        "\"\xf0\x90\x80\x80\xee\x80\x80\xe0\xa0\x80\xed\x9f\xbf\"",
        "\"\\\\\\\"\\/\"",
        "{\"a\\n\":\"\",\"a\\n\":false}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        both_say(good[i], true);
}

static void anything_else_does_not(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "NaN",
        "tru",
        "truex",
        "nulll",
        "[1,,2]",
        "[1,]",
        "[,1]",
        "{,}",
        "{\"a\"}",
        "{1:2}",
        "{'a':1}",
        "{\"a\":1,}",
        "[1}",
        "{]",
        "1 2",
        "[] []",
        "]",
        "\"",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u00g0\"",
        "\"\\u0000\"",
        "\"\\ud83d\"",
        "\"\\ude00\"",
        "\"\\ud83d\\u0041\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xf5\x80\x80\x80\"",
        "\"\xc3\"",
        "\"\x80\"",
        "[1",
        "{\"a\":",
        "{\"a\":1",
        ",",
        "1,",
        "[1.5e+]",
        "[-]",
        "[--1]",
        "[- 1]",
        "[0x1]",
        "[1e1.5]",
        "[1.2.3]",
        "[1.e5]",
        "[-01]",
        "[1+2]",
        "[Infinity]",
        "[True]",
        "nul",
        "[fals]",
        "[\"a\"\"b\"]",
        "[\"a\":1]",
        "{\"a\":1:2}",
        "{\"a\":[}",
        "{\"a\",1}",
        "{\"a\":1 \"b\":2}",
        "[[]",
        "[]]",
        "\f[]",
        "\xef\xbb\xbf[]",
        "[\"\t\"]",
        "\"\\\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\uD800\\uD800\"",
        "\"\\uD800\\n\"",
        "\"\\uD800\\\\uDC00\"",
        "\"\xc1\xbf\"",
        "\"\xe0\x80\x80\"",
        "\"\xf0\x80\x80\x80\"",
        "\"\xf4\x90\x80\x80\"",
        "\"\xed\xbf\xbf\"",
        "\"\xe2\x82\"",
        "\"\xe2\x82 \"",
        "\"\xff\"",
        "\xc3\xa9",
        "// a\n1",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        both_say(bad[i], false);
}

static void nesting_is_bounded(void **state)
{
    char text[2 * JSON_DEPTH_MAX + 2];
    (void)state;
    for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(checks(text, 2 * depth, 100), depth == JSON_DEPTH_MAX);
        assert_int_equal(parses(text, 2 * depth), depth == JSON_DEPTH_MAX);
    }
}

// Both give the same verdict about damaged documents, wherever they are cut.
static void it_says_what_the_parser_says_however_the_text_is_cut(void **state)
{
    static const char *const seeds[] = {
        "{\"a\":[1,-2.5e+10,0.1,true,false,null],\"b\\u00e9\":{\"c\":\"x\\\"y\\\\\",\"d\":[]},\"\":\"\\ud83d\\ude00\"}",
        "[[[{\"k\":[\"\xe2\x82\xac\xf0\x9f\x98\x80 and so on, which is long\",1e9]}]],{},[{}], 10 , \"\\/\\b\"]",
    };
    static const char bytes[] = "[]{},:\"\\u0019eE+-.tfn \n\x80\xc3\xed\xf0\x7f";
    struct rand r;
    unsigned n_good = 0;
    (void)state;
    rand_seed(&r, 11);
    for (int round = 0; round < 60000; round++) {
        char text[200];
        const char *seed = seeds[rand_below(&r, ARRAY_LEN(seeds))];
        size_t len = strlen(seed);
        memcpy(text, seed, len);
        for (uint64_t i = rand_below(&r, 3); i > 0; i--)
            text[rand_below(&r, len)] = bytes[rand_below(&r, sizeof bytes)]; // also the NUL
        if (rand_below(&r, 8) == 0)
            len = rand_below(&r, len);
        struct json_check s = {0};
        bool good = true;
        for (size_t at = 0, n; good && at < len; at += n) {
            n = 1 + rand_below(&r, 20);
            n = MIN(n, len - at);
            good = json_check_feed(&s, text + at, n);
        }
        good = good && json_check_ends(&s);
        n_good += good;
        if (good != parses(text, len))
            fail_msg("round %d: %d for %.*s", round, good, (int)len, text);
    }
    assert_in_range(n_good, 1000, 59000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_documents_pass),
        cmocka_unit_test(anything_else_does_not),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(it_says_what_the_parser_says_however_the_text_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
