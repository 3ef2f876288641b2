// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_writer.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void commas_go_between_and_nowhere_else(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_object(&w, "empty");
    writer_object_end(&w);
    writer_list(&w, "list");
    writer_i64(&w, NULL, INT64_MIN);
    writer_i64(&w, NULL, INT64_C(9007199254740993));
    writer_list(&w, NULL);
    writer_list_end(&w);
    writer_object(&w, NULL);
    writer_bool(&w, "yes", true);
    writer_null(&w, "no");
    writer_object_end(&w);
    writer_str(&w, NULL, "s");
    writer_list_end(&w);
    writer_str(&w, "nil", NULL);
    writer_str_set(&w, "left out", NULL);
    writer_str_set(&w, "left out", "");
    writer_raw(&w, "raw", "1.50", 4);
    writer_key(&w, "key of a slice", 3);
    writer_bool(&w, NULL, false);
    writer_object_end(&w);
    assert_string_equal(writer_finish(&w, &a),
                        "{\"empty\":{},\"list\":[-9223372036854775808,9007199254740993,[],{\"yes\":true,\"no\":null},"
                        "\"s\"],\"nil\":null,\"raw\":1.50,\"key\":false}");
    arena_done(&a);
}

static void values_stand_in_a_text_of_known_form(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json_writer w = WRITER_INIT;
    const char *volatile none = NULL; // printf() cannot take it
    writer_object(&w, NULL);
    writer_print(&w, "first", "[%s,%s,%" PRId64 "]", "it's \"q\"", none, INT64_MIN);
    writer_print(&w, "second", "{'raw':%-s,'s':%s}", "{\"x\":[1]}", "");
    writer_bool(&w, "third", true);
    writer_object_end(&w);
    assert_string_equal(writer_finish(&w, &a), "{\"first\":[\"it's \\\"q\\\"\",null,-9223372036854775808],"
                                               "\"second\":{\"raw\":{\"x\":[1]},\"s\":\"\"},\"third\":true}");
    assert_string_equal(json_print(&a, "'%-s'", "alone"), "\"alone\"");
    arena_done(&a);
}

static void what_was_read_is_copied_with_its_name(void **state)
{
    (void)state;
    static const char text[] = "{\"a\\u0062\": 1.50, \"list\": [ 1 ]}";
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root;
    struct json_writer w = WRITER_INIT;
    assert_int_equal(json_parse(text, sizeof text - 1, NULL, &a, &root, &err), 0);
    writer_list(&w, NULL);
    writer_copy(&w, root);
    writer_object(&w, NULL);
    JSON_FOREACH(m, root)
        writer_copy(&w, m);
    writer_strs(&w, "words", (const char *const[]){"x", NULL}, 2);
    writer_strs(&w, "none", NULL, 0);
    writer_object_end(&w);
    writer_list_end(&w);
    assert_string_equal(writer_finish(&w, &a), "[{\"a\\u0062\": 1.50, \"list\": [ 1 ]},{\"ab\":1.50,\"list\":[ 1 ],"
                                               "\"words\":[\"x\",null],\"none\":[]}]");
    arena_done(&a);
}

static void strings_are_escaped_and_always_utf8(void **state)
{
    (void)state;
    const struct {
        const char *in, *want;
    } cases[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"\b\f\n\r\t\x01\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\""},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80!", "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80!\""},
        {"cut \xe2\x82", "\"cut \xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xff\xc3\xa9\x80z", "\"\xef\xbf\xbd\xc3\xa9\xef\xbf\xbdz\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena a = ARENA_INIT;
        struct json_writer w = WRITER_INIT;
        writer_str(&w, NULL, cases[i].in);
        assert_string_equal(writer_finish(&w, &a), cases[i].want);
        arena_done(&a);
    }
}

static void a_key_may_hold_byte_0(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_key(&w, "a\0b", 3);
    writer_bool(&w, NULL, true);
    writer_object_end(&w);
    assert_string_equal(writer_finish(&w, &a), "{\"a\\u0000b\":true}");
    arena_done(&a);
}

static void times_are_written_in_the_precision_of_their_type(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_time(&w, "t", INT64_C(1767323045678));
    writer_micro(&w, "m", INT64_C(1767323045678));
    writer_time(&w, "none", 0);
    writer_object_end(&w);
    assert_string_equal(writer_finish(&w, &a),
                        "{\"t\":\"2026-01-02T03:04:05Z\",\"m\":\"2026-01-02T03:04:05.678000Z\",\"none\":null}");
    arena_done(&a);
}

static void a_document_over_the_cap_is_none(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct json_writer w = WRITER_INIT_MAX(8);
    writer_str(&w, NULL, "123456");
    assert_string_equal(writer_finish(&w, &a), "\"123456\"");
    w = WRITER_INIT_MAX(8);
    writer_str(&w, NULL, "1234567");
    assert_null(writer_finish(&w, &a));
    arena_done(&a);
}

static void a_long_string_is_cut_between_characters(void **state)
{
    (void)state;
    const struct {
        const char *in;
        size_t max;
        const char *want;
    } cases[] = {
        {"abc", 3, "\"abc\""},
        {"abcd", 3, "\"abc\""},
        {"a\xc3\xa9z", 3, "\"a\xc3\xa9\""},
        {"a\xc3\xa9z", 2, "\"a\""},
        {"\xf0\x9f\x98\x80", 3, "\"\""},
        {"\n\n\n", 2, "\"\\n\\n\""},         // the length without escapes
        {"\xff\xff", 5, "\"\xef\xbf\xbd\""}, // three bytes each
        {"\xff\xff", 6, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"", 0, "\"\""},
        {NULL, 9, "null"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct arena a = ARENA_INIT;
        struct json_writer w = WRITER_INIT;
        writer_str_max(&w, NULL, cases[i].in, cases[i].max);
        assert_string_equal(writer_finish(&w, &a), cases[i].want);
        arena_done(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_go_between_and_nowhere_else),
        cmocka_unit_test(strings_are_escaped_and_always_utf8),
        cmocka_unit_test(a_key_may_hold_byte_0),
        cmocka_unit_test(values_stand_in_a_text_of_known_form),
        cmocka_unit_test(what_was_read_is_copied_with_its_name),
        cmocka_unit_test(times_are_written_in_the_precision_of_their_type),
        cmocka_unit_test(a_document_over_the_cap_is_none),
        cmocka_unit_test(a_long_string_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
