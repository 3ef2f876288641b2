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

static bool is_whole(const char *text, size_t len)
{
    struct json_check s = {0};
    return json_check_feed(&s, text, len) && json_check_ends(&s);
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
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!is_whole(good[i], strlen(good[i])))
            fail_msg("%s", good[i]);
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
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (is_whole(bad[i], strlen(bad[i])))
            fail_msg("%s", bad[i]);
}

static void nesting_is_bounded(void **state)
{
    char text[2 * JSON_DEPTH_MAX + 2];
    (void)state;
    for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(is_whole(text, 2 * depth), depth == JSON_DEPTH_MAX);
    }
}

// The parser is the oracle, of documents that somebody has damaged; and where they are cut makes no difference.
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
            text[rand_below(&r, len)] = bytes[rand_below(&r, sizeof bytes)]; // with its NUL
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
