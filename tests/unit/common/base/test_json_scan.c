// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_scan.h"

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

// Compares the elements as "key=value|key=value", with "!" if the text is not JSON. The text has memory of exactly its
// size.
static void scans_to(const char *json, const char *want)
{
    struct buf got = BUF_INIT(4096);
    struct json_scan s;
    struct json_item item;
    size_t len = strlen(json);
    char *exact = xmalloc(len);
    memcpy(exact, json, len);
    int r = json_scan_begin(&s, exact, len);
    if (r == 0)
        buf_puts(&got, "none");
    while (r > 0 && (r = json_scan_next(&s, &item)) > 0) {
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
        struct json_scan s;
        struct json_item item;
        int r = json_scan_begin(&s, broken[i], strlen(broken[i]));
        assert_int_equal(r, 1);
        while ((r = json_scan_next(&s, &item)) > 0)
            ;
        if (r == 0)
            fail_msg("%s was taken for JSON", broken[i]);
    }
    char deep[JSON_SKIP_PAIRED_MAX + 3];
    memset(deep, '[', sizeof deep);
    struct json_scan s;
    struct json_item item;
    assert_int_equal(json_scan_begin(&s, deep, sizeof deep), 1);
    assert_true(json_scan_next(&s, &item) < 0);
}

static void a_resumed_scan_goes_on_behind_an_element(void **state)
{
    (void)state;
    static const char list[] = "[ 1 , \"a,]\", [2] ]";
    struct json_scan s;
    struct json_item item;
    assert_int_equal(json_scan_begin(&s, list, sizeof list - 1), 1);
    static const char *const want[] = {"1", "\"a,]\"", "[2]"};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        assert_int_equal(json_scan_next(&s, &item), 1);
        assert_int_equal(item.len, strlen(want[i]));
        assert_memory_equal(item.text, want[i], item.len);
        json_scan_resume(&s, s.p, (size_t)(s.end - s.p));
    }
    assert_int_equal(json_scan_next(&s, &item), 0);
}

// The following tests compare the scan with slow code for the same task. The random texts are always the same.

static uint32_t below(uint64_t *seed, uint32_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33) % n;
}

static void put_string(struct buf *b, uint64_t *seed)
{
    static const char *const bits[] = {"\\\"", "\\\\", "\\n", "{", "]", "[", "}", ",", ":", "\xc3\xa4", "\\u00e4"};
    buf_putc(b, '"');
    for (uint32_t n = below(seed, 4) ? below(seed, 9) : below(seed, 90); n; n--)
        buf_puts(b, below(seed, 3) ? "a" : bits[below(seed, ARRAY_LEN(bits))]);
    buf_putc(b, '"');
}

static void put_value(struct buf *b, uint64_t *seed, int depth)
{
    static const char *const words[] = {"true", "false", "null", "0", "-1.5e3", "9007199254740993"};
    uint32_t kind = below(seed, depth ? 5 : 2) + (depth == 6 ? 3 : 0);
    if (kind < 2) {
        put_string(b, seed);
        return;
    }
    if (kind == 2 || !depth) {
        buf_puts(b, words[below(seed, ARRAY_LEN(words))]);
        return;
    }
    bool list = below(seed, 2);
    buf_putc(b, list ? '[' : '{');
    for (uint32_t i = 0, n = below(seed, 6); i < n; i++) {
        buf_puts(b, i ? below(seed, 2) ? "," : " ,\n" : "");
        if (!list) {
            put_string(b, seed);
            buf_puts(b, below(seed, 2) ? ":" : " : ");
        }
        put_value(b, seed, depth - 1);
    }
    buf_putc(b, list ? ']' : '}');
}

// Goes byte by byte. Returns the index after the value; 0 if it does not end.
static size_t slow_end(const char *p, size_t n, bool paired)
{
    char open[512];
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (paired && depth == JSON_SKIP_PAIRED_MAX)
                return 0;
            assert_true(depth < sizeof open);
            open[depth++] = c == '[' ? ']' : '}';
        } else if (c == ']' || c == '}') {
            if (open[--depth] != c && paired)
                return 0;
        }
        if (!depth && !in_string)
            return i < n ? i + 1 : 0;
    }
    return 0;
}

// Feeds pieces of at most `piece` bytes.
static size_t fed_end(const char *p, size_t n, bool paired, size_t piece)
{
    struct json_skip s;
    bool ended = false;
    size_t i = 0;
    assert_true(json_skip_start(&s, *p));
    s.paired = paired;
    while (!ended && !s.broken && i < n) {
        size_t len = MIN(piece, n - i);
        char *exact = xmalloc(len); // a sanitizer sees a read after it
        memcpy(exact, p + i, len);
        i += json_skip_feed(&s, exact, len, &ended);
        free(exact);
    }
    return ended ? i : 0;
}

static void agrees(const char *text, size_t len)
{
    for (int paired = 0; paired < 2; paired++) {
        size_t want = slow_end(text, len, paired);
        static const size_t pieces[] = {1, 7, 63, 64, 65, 1 << 20};
        for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
            if (fed_end(text, len, paired, pieces[i]) != want)
                fail_msg("pieces of %zu, %spaired: ends at %zu, not at %zu: %.*s", pieces[i], paired ? "" : "not ",
                         fed_end(text, len, paired, pieces[i]), want, (int)len, text);
    }
}

static void a_value_ends_where_it_does_byte_by_byte_in_any_pieces(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        struct buf b = BUF_INIT(1 << 20);
        put_value(&b, &seed, 6);
        size_t len = b.len;
        buf_puts(&b, ",\"behind\":[1]}");
        assert_int_equal(slow_end(b.data, b.len, true), len);
        agrees(b.data, b.len);
        for (int i = 0; i < 4; i++) { // also for texts that are no longer JSON
            b.data[1 + below(&seed, (uint32_t)b.len - 1)] = "\"\\{}[],:a"[below(&seed, 9)];
            agrees(b.data, b.len);
        }
        buf_done(&b);
    }
}

static void same_as_the_tree(const char *text, size_t len)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    struct json_scan s;
    struct json_item item;
    assert_int_equal(json_parse(text, len, NULL, &a, &root, &err), 0);
    assert_true(json_scan_one(text, len));
    assert_int_equal(json_scan_begin(&s, text, len), 1);
    JSON_FOREACH(child, root) {
        assert_int_equal(json_scan_next(&s, &item), 1);
        assert_ptr_equal(item.text, child->text);
        assert_int_equal(item.len, child->len);
        assert_int_equal(item.key != NULL, child->key != NULL);
    }
    assert_int_equal(json_scan_next(&s, &item), 0);
    arena_done(&a);
}

static void elements_and_members_are_those_of_the_reader(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 3000; round++) {
        struct buf b = BUF_INIT(1 << 20);
        put_value(&b, &seed, 6);
        same_as_the_tree(b.data, b.len);
        buf_done(&b);
    }
}

static void what_is_only_counted_may_be_nested_at_any_depth(void **state)
{
    (void)state;
    char deep[2 * (JSON_SKIP_PAIRED_MAX + 100)];
    memset(deep, '[', sizeof deep / 2);
    memset(deep + sizeof deep / 2, ']', sizeof deep / 2);
    agrees(deep, sizeof deep);
    assert_int_equal(fed_end(deep, sizeof deep, false, 64), sizeof deep);
    assert_int_equal(fed_end(deep, sizeof deep, true, 64), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_found_without_looking_into_them),
        cmocka_unit_test(what_is_no_list_or_object_has_none),
        cmocka_unit_test(broken_brackets_strings_and_commas_are_seen),
        cmocka_unit_test(a_resumed_scan_goes_on_behind_an_element),
        cmocka_unit_test(a_value_ends_where_it_does_byte_by_byte_in_any_pieces),
        cmocka_unit_test(elements_and_members_are_those_of_the_reader),
        cmocka_unit_test(what_is_only_counted_may_be_nested_at_any_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
