// SPDX-License-Identifier: Apache-2.0
#include "common/base/json.h"

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

// Parses a copy of exactly that size, so a sanitizer sees a read after it.
static int parse(const char *text, size_t len, const char *const *prune, struct arena *a, struct json **ret,
                 struct err *err)
{
    char *exact = arena_memdup(a, text, len);
    return json_parse(exact, len, prune, a, ret, err);
}

static const struct json *parse_ok(const char *text, struct arena *a)
{
    struct json *root = NULL;
    struct err err = ERR_INIT;
    if (parse(text, strlen(text), NULL, a, &root, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return root;
}

static void refused(const char *text, size_t len, const char *why)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    int r = parse(text, len, NULL, &a, &root, &err);
    arena_done(&a);
    assert_true(r < 0);
    assert_string_equal(err.msg, why);
}

#define REFUSED(text, why) refused(text, sizeof(text) - 1, why)

static void values_keep_their_text(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct json *v = parse_ok(" { \"a\" : [ 1 , -2.50e+3 ] ,\"b\":{\"c\":null}, \"d\":true,\"e\":\"x\" } ", &a);
    assert_int_equal(v->type, JSON_OBJECT);
    assert_int_equal(json_count(v), 4);
    const struct json *list = json_get(v, "a");
    assert_int_equal(list->type, JSON_LIST);
    assert_int_equal(json_count(list), 2);
    const struct json *number = list->child->next;
    assert_int_equal(number->type, JSON_NUMBER);
    assert_int_equal(number->len, strlen("-2.50e+3"));
    assert_memory_equal(number->text, "-2.50e+3", number->len);
    const struct json *object = json_get(v, "b");
    assert_memory_equal(object->text, "{\"c\":null}", object->len);
    assert_int_equal(json_get(v, "d")->type, JSON_BOOL);
    assert_true(json_str_is(json_get(v, "e"), "x"));
    arena_done(&a);
}

static void lookups_are_case_sensitive_and_null_is_missing(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct json *v =
        parse_ok("{\"Name\":1,\"nam\":2,\"names\":3,\"gone\":null,\"name\":4,\"name\":5,\"\":6}", &a);
    int64_t n;
    assert_true(json_i64(json_get(v, "name"), &n));
    assert_int_equal(n, 4); // the first of two
    assert_null(json_get(v, "gone"));
    assert_null(json_get(v, "NAME"));
    assert_null(json_get(NULL, "name"));
    assert_null(json_get(json_get(v, "name"), "name"));
    assert_int_equal(json_count(v), 7);
    arena_done(&a);
}

static void truth_is_that_of_a_boolean(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json *v;
    struct err err = ERR_INIT;
    const char *text = "{\"yes\":true,\"no\":false,\"word\":\"true\",\"one\":1}";
    assert_int_equal(parse(text, strlen(text), NULL, &a, &v, &err), 0);
    assert_true(json_is_true(json_get(v, "yes")) && !json_is_false(json_get(v, "yes")));
    assert_true(json_is_false(json_get(v, "no")) && !json_is_true(json_get(v, "no")));
    assert_false(json_is_true(json_get(v, "word")) || json_is_true(json_get(v, "one")) || json_is_true(NULL));
    assert_false(json_is_false(json_get(v, "word")) || json_is_false(json_get(v, "one")) || json_is_false(NULL));
    arena_done(&a);
}

static void integers_are_exact_or_refused(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct {
        const char *text;
        bool ok;
        int64_t value;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9007199254740993", true, INT64_C(9007199254740993)}, // 2^53 + 1: no double holds it
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"123456789012345678901234567890", false, 0},
        {"\"1\"", false, 0},
        {"true", false, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t n = 0;
        if (json_i64(parse_ok(cases[i].text, &a), &n) != cases[i].ok || n != cases[i].value)
            fail_msg("%s", cases[i].text);
    }
    arena_done(&a);
}

static void escapes_are_decoded(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct {
        const char *text, *want;
    } cases[] = {
        {"\"\"", ""},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00.\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80."},
        {"\"gr\xc3\xbc\xc3\x9f\"", "gr\xc3\xbc\xc3\x9f"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct json *v = parse_ok(cases[i].text, &a);
        assert_string_equal(json_str(v, &a), cases[i].want);
        assert_true(json_str_is(v, cases[i].want));
        assert_false(json_str_is(v, "something else"));
    }
    assert_null(json_str(parse_ok("1", &a), &a));
    const struct json *object = parse_ok("{\"n\\u0061me\":1}", &a);
    assert_non_null(json_get(object, "name"));
    arena_done(&a);
}

static void long_strings_are_scanned_to_the_byte(void **state)
{
    (void)state;
    // There is a special byte at each offset of a step.
    for (size_t n = 0; n < 20; n++) {
        struct arena a = ARENA_INIT;
        char text[64] = "\"", want[64] = "";
        memset(text + 1, 'x', n);
        memset(want, 'x', n);
        memcpy(text + 1 + n, "\\ny\"", 5);
        memcpy(want + n, "\ny", 3);
        assert_string_equal(json_str(parse_ok(text, &a), &a), want);
        text[1 + n] = '\x1f';
        struct json *root;
        struct err err = ERR_INIT;
        assert_int_equal(parse(text, strlen(text), NULL, &a, &root, &err), ERR_INVALID);
        text[1 + n] = '\xff';
        assert_int_equal(parse(text, strlen(text), NULL, &a, &root, &err), ERR_INVALID);
        arena_done(&a);
    }
}

static void what_is_no_json_is_refused_with_its_place(void **state)
{
    (void)state;
    REFUSED("", "not valid JSON at byte 0: unexpected end");
    REFUSED("  ", "not valid JSON at byte 2: unexpected end");
    REFUSED("{} x", "not valid JSON at byte 3: text follows the end of the document");
    REFUSED("{}\0", "not valid JSON at byte 2: text follows the end of the document");
    REFUSED("{\"a\":1", "not valid JSON at byte 6: expected ',' or '}'");
    REFUSED("{\"a\":1,}", "not valid JSON at byte 7: expected the name of a member");
    REFUSED("{a:1}", "not valid JSON at byte 1: expected the name of a member");
    REFUSED("{\"a\" 1}", "not valid JSON at byte 5: expected ':'");
    REFUSED("{\"a\":}", "not valid JSON at byte 5: expected a value");
    REFUSED("[1 2]", "not valid JSON at byte 3: expected ',' or ']'");
    REFUSED("[1,]", "not valid JSON at byte 3: expected a value");
    REFUSED("01", "not valid JSON at byte 1: text follows the end of the document");
    REFUSED("1.", "not valid JSON at byte 2: bad number");
    REFUSED("1e", "not valid JSON at byte 2: bad number");
    REFUSED("+1", "not valid JSON at byte 0: expected a value");
    REFUSED("NaN", "not valid JSON at byte 0: expected a value");
    REFUSED("tru", "not valid JSON at byte 0: expected a value");
    REFUSED("'a'", "not valid JSON at byte 0: expected a value");
    REFUSED("\"a", "not valid JSON at byte 2: unterminated string");
    REFUSED("\"a\\", "not valid JSON at byte 3: unterminated string");
    REFUSED("\"\\x\"", "not valid JSON at byte 2: bad escape");
    REFUSED("\"\\u12g4\"", "not valid JSON at byte 5: bad \\u escape");
    REFUSED("\"\\u12", "not valid JSON at byte 5: bad \\u escape");
    REFUSED("\"\n\"", "not valid JSON at byte 1: control character in a string");
    REFUSED("{/**/}", "not valid JSON at byte 1: expected the name of a member");
}

static void values_may_have_nul_and_long_lists_deep_inside(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    size_t len;
    const char *text = "{\"a\":\"x\\u0000y\",\"b\":[[1,{\"c\":\"\\u0000\"}]]}";
    assert_int_equal(json_parse_values(text, strlen(text), 1, &a, &root, &err), 0);
    assert_memory_equal(json_text(json_get(root, "a"), &a, &len), "x\0y", 4);
    assert_int_equal(len, 3);
    assert_null(json_get(root, "b")->child);
    assert_int_equal(json_parse_values("{\"\\u0000\":1}", 12, 1, &a, &root, &err), ERR_INVALID);
    struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, "[[0");
    for (int i = 1; i <= JSON_VALUES_MAX; i++)
        buf_puts(&b, ",0");
    buf_puts(&b, "]]");
    assert_int_equal(json_parse_values(buf_str(&b), b.len, 1, &a, &root, &err), 0);
    assert_int_equal(json_parse_values(buf_str(&b), b.len, 2, &a, &root, &err), ERR_LIMIT);
    buf_done(&b);
    arena_done(&a);
}

static void nul_and_broken_text_never_get_in(void **state)
{
    (void)state;
    REFUSED("\"a\0b\"", "not valid JSON at byte 2: control character in a string");
    REFUSED("\"\\u0000\"", "not valid JSON at byte 6: bad \\u escape");
    REFUSED("{\"a\\u0000\":1}", "not valid JSON at byte 8: bad \\u escape");
    REFUSED("\"\\ud83d\"", "not valid JSON at byte 7: bad \\u escape");
    REFUSED("\"\\ud83dxxxxxx\"", "not valid JSON at byte 7: bad \\u escape");
    REFUSED("\"\\ud83d\\u0041\"", "not valid JSON at byte 12: bad \\u escape");
    REFUSED("\"\\ude00\\ud83d\"", "not valid JSON at byte 6: bad \\u escape");
    REFUSED("\"\xc3\"", "not valid JSON at byte 2: not UTF-8");
    REFUSED("\"\xc0\x80\"", "not valid JSON at byte 1: not UTF-8");
    REFUSED("\"\xed\xa0\x80\"", "not valid JSON at byte 2: not UTF-8");
    REFUSED("\xef\xbb\xbf{}", "not valid JSON at byte 0: expected a value");
}

static void depth_and_length_are_bounded(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    char text[4 * JSON_DEPTH_MAX];
    memset(text, '[', JSON_DEPTH_MAX);
    memset(text + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    assert_int_equal(json_parse(text, 2 * JSON_DEPTH_MAX, NULL, &a, &root, &err), 0);
    memset(text, '[', JSON_DEPTH_MAX + 1);
    memset(text + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
    assert_int_equal(json_parse(text, 2 * JSON_DEPTH_MAX + 2, NULL, &a, &root, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "JSON is nested deeper than 128 levels");
    assert_int_equal(json_parse(text, (size_t)JSON_LEN_MAX + 1, NULL, &a, &root, &err), ERR_LIMIT);
    arena_done(&a);
}

static void what_is_in_pruned_members_is_checked_but_not_kept(void **state)
{
    (void)state;
    static const char *const prune[] = {"big", "env", NULL};
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    const char *text = "{\"big\":[{\"x\":[1,\"2\"]}],\"keep\":{\"env\": {\"y\":1},\"labels\":{\"env\":\"prod\"}}}";
    assert_int_equal(parse(text, strlen(text), prune, &a, &root, &err), 0);
    const struct json *big = json_get(root, "big"), *keep = json_get(root, "keep");
    assert_int_equal(big->type, JSON_LIST);
    assert_int_equal(json_count(big), 0);
    assert_memory_equal(big->text, "[{\"x\":[1,\"2\"]}]", big->len); // still as it came
    assert_null(json_get(json_get(keep, "env"), "y"));
    assert_true(
        json_str_is(json_get(json_get(keep, "labels"), "env"), "prod")); // a label is neither a list nor an object
    text = "{\"big\":[{\"x\":[1,\"\\u0000\"]}]}";
    assert_int_equal(parse(text, strlen(text), prune, &a, &root, &err), ERR_INVALID);
    text = "{\"big\":[1,}]}";
    assert_int_equal(parse(text, strlen(text), prune, &a, &root, &err), ERR_INVALID);
    arena_done(&a);
}

// The text before it moves it over the borders of the blocks that are read at once.
static void what_is_pruned_of_a_trusted_text_ends_at_its_bracket(void **state)
{
    (void)state;
    static const char *const prune[] = {"big", NULL};
    static const char *const nested[] = {
        "{}",
        "[[],[[]],{}]",
        "{\"f:a\":{\"k:{\\\"name\\\":\\\"x\\\"}\":{\".\":{}}},\"]}\":\"{[\"}",
        "[\"\\\\\",\"\\\\\\\"]\",\"\\\\\\\\\"]",
        "{\"a\":[1,],\"not checked\":\"\\u0000\"}",
        "[\"a string of more than sixty-four bytes ]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\"]",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1"
        "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    };
    for (size_t i = 0; i < ARRAY_LEN(nested); i++) {
        for (int before = 0; before < 130; before++) {
            struct arena a = ARENA_INIT;
            struct json *root = NULL;
            struct err err = ERR_INIT;
            const char *text = arena_printf(&a, "{\"pad\":\"%*s\",\"big\":%s,\"after\":1}", before, "", nested[i]);
            size_t len = strlen(text);
            if (json_parse_trusted(arena_memdup(&a, text, len), len, prune, &a, &root, &err) < 0)
                fail_msg("%s: %s", text, err.msg);
            const struct json *big = json_get(root, "big");
            assert_int_equal(big->len, strlen(nested[i]));
            assert_null(big->child);
            assert_non_null(json_get(root, "after"));
            len -= strlen(",\"after\":1}") + 1; // its last bracket is missing
            assert_int_equal(json_parse_trusted(arena_memdup(&a, text, len), len, prune, &a, &root, &err), ERR_INVALID);
            arena_done(&a);
        }
    }
}

static void what_is_not_pruned_of_a_trusted_text_is_checked(void **state)
{
    (void)state;
    static const char *const prune[] = {"big", NULL};
    struct arena a = ARENA_INIT;
    struct json *root = NULL;
    struct err err = ERR_INIT;
    const char *text = "{\"small\":[1,}],\"big\":[]}";
    assert_int_equal(json_parse_trusted(text, strlen(text), prune, &a, &root, &err), ERR_INVALID);
    arena_done(&a);
}

static void a_tree_cannot_grow_without_bound(void **state)
{
    (void)state;
    static const char *const prune[] = {"big", NULL};
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, "{\"big\":[0");
    for (int i = 1; i <= JSON_VALUES_MAX; i++)
        buf_puts(&b, ",0");
    buf_puts(&b, "]}");
    assert_int_equal(parse(buf_str(&b), b.len, prune, &a, &root, &err), 0);
    assert_int_equal(parse(buf_str(&b), b.len, NULL, &a, &root, &err), ERR_LIMIT);
    assert_string_equal(err.msg, "JSON of more than 100000 values");
    buf_done(&b);
    arena_done(&a);
}

static const char plain[] =
    "The quick brown fox jumps over the lazy dog, {[0123456789]}; ~the quick brown fox jumps over "
    "the lazy dog, THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG";

// The reader looks at many bytes of plain text at a time.
static void what_ends_or_breaks_a_string_is_seen_wherever_it_stands(void **state)
{
    (void)state;
    static const struct {
        const char *special;
        bool good;
    } cases[] = {{"\"", false}, {"\x1f", false}, {"\xff", false}, {"\\x", false}, {"\\n", true}, {"\xc3\xa9", true}};
    char text[256];
    for (size_t len = 0; len < 140; len++)
        for (size_t at = 0; at <= len; at++)
            for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct arena a = ARENA_INIT;
                struct err err = ERR_INIT;
                struct json *v;
                int n = snprintf(text, sizeof text, "\"%.*s%s%.*s\"", (int)at, plain, cases[i].special, (int)(len - at),
                                 plain + at);
                assert_int_equal(json_parse(text, (size_t)n, NULL, &a, &v, &err) == 0, cases[i].good);
                arena_done(&a);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_or_breaks_a_string_is_seen_wherever_it_stands),
        cmocka_unit_test(values_keep_their_text),
        cmocka_unit_test(lookups_are_case_sensitive_and_null_is_missing),
        cmocka_unit_test(truth_is_that_of_a_boolean),
        cmocka_unit_test(integers_are_exact_or_refused),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(long_strings_are_scanned_to_the_byte),
        cmocka_unit_test(what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test(values_may_have_nul_and_long_lists_deep_inside),
        cmocka_unit_test(nul_and_broken_text_never_get_in),
        cmocka_unit_test(depth_and_length_are_bounded),
        cmocka_unit_test(what_is_in_pruned_members_is_checked_but_not_kept),
        cmocka_unit_test(what_is_pruned_of_a_trusted_text_ends_at_its_bracket),
        cmocka_unit_test(what_is_not_pruned_of_a_trusted_text_is_checked),
        cmocka_unit_test(a_tree_cannot_grow_without_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
