// SPDX-License-Identifier: Apache-2.0
#include "operator/api/json_encode.h"
#include "operator/api/json_table.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "operator/api/object.h"
#include "operator/api/resource.h"
#include "tests/unit/operator/api/test_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

enum colour { RED, GREEN, OTHER };

struct part {
    const char *name;
    int32_t size;
};

struct thing {
    const char *text;
    bool flag;
    int32_t small;
    int64_t large;
    int64_t when;
    enum colour colour, open;
    struct labels labels;
    struct resources amounts, offered;
    const char *raw;
    const char **words;
    int32_t *codes;
    size_t n_words, n_codes;
    const char *rules;
    struct part *parts;
    size_t n_parts;
    bool has_inner;
    int32_t depth;
    const char *label;
};
#define T(member) offsetof(struct thing, member)

static const char *const colours[] = {"Red", "Green", "Other", NULL};
// clang-format off
static const struct json_table part_table = JSON_TABLE(struct part,
    {"name", J_STRING, offsetof(struct part, name), .required = true},
    {"size", J_I32, offsetof(struct part, size), .missing = 1});
static const struct json_table inner_table = JSON_TABLE(struct thing,
    {"depth", J_I32, T(depth), .min = 0, .max = 10, .missing = 7},
    {"label", J_STRING, T(label), .required = true});
static const struct json_table thing_table = JSON_TABLE(struct thing,
    {"text", J_STRING, T(text), .missing_str = "none"},
    {"flag", J_BOOL, T(flag), .missing = true},
    {"small", J_I32, T(small)},
    {"large", J_I64, T(large), .missing = -1},
    {"when", J_TIME, T(when)},
    {"colour", J_ENUM, T(colour), .names = colours, .missing = GREEN},
    {"open", J_ENUM, T(open), .names = colours, .open_enum = true, .missing = GREEN},
    {"labels", J_LABELS, T(labels), .prefix = "a/"},
    {"amounts", J_QUANTITIES, T(amounts)},
    {"offered", J_QUANTITIES, T(offered), .offered = true},
    {"raw", J_TEXT, T(raw)},
    {"words", J_STRINGS, T(words), .offset_n = T(n_words)},
    {"codes", J_I32S, T(codes), .offset_n = T(n_codes), .min = 1, .max = 255},
    {"rules", J_ITEMS, T(rules)},
    {"parts", J_LIST, T(parts), .offset_n = T(n_parts), .table = &part_table},
    {"inner", J_OBJECT, .offset_is = T(has_inner), .table = &inner_table});
// clang-format on

static int decode(const char *text, struct thing *ret, struct err *err)
{
    struct json *root;
    memset(ret, 0, sizeof *ret);
    int r = json_parse(text, strlen(text), NULL, &arena, &root, err);
    return r < 0 ? r : json_decode(&thing_table, root, "", ret, &arena, err);
}

static const char *unknown(const char *text)
{
    struct json *root;
    struct err err = ERR_INIT;
    if (json_parse(text, strlen(text), NULL, &arena, &root, &err) < 0)
        fail_msg("%s", err.msg);
    return json_unknown(&thing_table, root, "thing", &arena);
}

static void a_member_that_nobody_reads_is_found(void **state)
{
    (void)state;
    assert_null(unknown("{}"));
    assert_null(unknown("{\"text\":null,\"raw\":{\"any\":1},\"rules\":[{\"any\":1}],\"labels\":{\"any\":\"1\"},"
                        "\"parts\":[{\"name\":\"a\"}],\"inner\":{\"depth\":1,\"label\":\"b\"}}"));
    assert_string_equal(unknown("{\"flag\":true,\"txt\":1,\"other\":2}"), "thing.txt");
    assert_string_equal(unknown("{\"Text\":\"a\"}"), "thing.Text");
    assert_string_equal(unknown("{\"inner\":{\"label\":\"b\",\"dept\":1}}"), "thing.inner.dept");
    assert_string_equal(unknown("{\"parts\":[{\"name\":\"a\"},{\"sise\":2}]}"), "thing.parts[1].sise");
}

static void every_kind_is_read(void **state)
{
    (void)state;
    struct thing t;
    struct err err = ERR_INIT;
    assert_int_equal(
        decode("{\"text\":\"x\\ty\",\"flag\":false,\"small\":-2147483648,\"large\":9007199254740993,"
               "\"when\":\"1970-01-01T00:00:01.5Z\",\"colour\":\"Red\",\"open\":\"Mauve\","
               "\"labels\":{\"a/z\":\"1\",\"b\":2,\"a/b\":\"2\"},\"amounts\":{\"memory\":\"1Ki\",\"cpu\":2,"
               "\"pods\":\"0\"},\"raw\":{\"big\": 12345678901234567890},\"words\":[\"u\",\"v\"],\"codes\":[1,255],"
               "\"rules\":[{},{}],\"parts\":[{\"name\":\"p\"},{\"size\":3,\"name\":\"q\"}],"
               "\"inner\":{\"depth\":3,\"label\":\"l\"},\"unknown\":[1,2]}",
               &t, &err),
        0);
    assert_string_equal(t.text, "x\ty");
    assert_false(t.flag);
    assert_int_equal(t.small, INT32_MIN);
    assert_int_equal(t.large, INT64_C(9007199254740993));
    assert_int_equal(t.when, 1500);
    assert_int_equal(t.colour, RED);
    assert_int_equal(t.open, GREEN); // an unknown name
    assert_int_equal(t.labels.n, 2); // sorted, and only those with the prefix
    assert_string_equal(t.labels.items[0].key, "a/b");
    assert_string_equal(labels_get(&t.labels, "a/z"), "1");
    assert_int_equal(t.amounts.n, 2);
    assert_int_equal(resources_get(&t.amounts, RESOURCE_CPU), 2000);
    assert_int_equal(resources_get(&t.amounts, RESOURCE_MEMORY), 1024000);
    assert_string_equal(t.raw, "{\"big\": 12345678901234567890}");
    assert_int_equal(t.n_words, 2);
    assert_string_equal(t.words[1], "v");
    assert_int_equal(t.n_codes, 2);
    assert_int_equal(t.codes[1], 255);
    assert_string_equal(t.rules, "[{},{}]");
    assert_int_equal(t.n_parts, 2);
    assert_int_equal(t.parts[0].size, 1);
    assert_string_equal(t.parts[1].name, "q");
    assert_true(t.has_inner);
    assert_int_equal(t.depth, 3);
    assert_string_equal(t.label, "l");
}

static void missing_and_null_members_take_their_defaults(void **state)
{
    (void)state;
    const char *texts[] = {"{}", "{\"text\":null,\"flag\":null,\"large\":null,\"colour\":null,\"parts\":null,"
                                 "\"labels\":null,\"raw\":null,\"inner\":null,\"when\":null}"};
    for (size_t i = 0; i < 2; i++) {
        struct thing t;
        struct err err = ERR_INIT;
        assert_int_equal(decode(texts[i], &t, &err), 0);
        assert_string_equal(t.text, "none");
        assert_true(t.flag);
        assert_int_equal(t.large, -1);
        assert_int_equal(t.colour, GREEN);
        assert_int_equal(t.n_parts, 0);
        assert_int_equal(t.labels.n, 0);
        assert_null(t.raw);
        assert_false(t.has_inner);
        assert_int_equal(t.depth, 7); // a default inside a missing object, whose required members are not required
        assert_null(t.label);
        assert_int_equal(t.when, 0);
    }
}

static void errors_name_the_path_and_what_was_there(void **state)
{
    (void)state;
    const struct {
        const char *text, *want;
    } cases[] = {
        {"[]", "expected object, got list"},
        {"{\"text\":1}", "text: expected string, got 1"},
        {"{\"flag\":\"true\"}", "flag: expected boolean, got \"true\""},
        {"{\"small\":2147483648}", "small: expected integer from -2147483648 to 2147483647, got 2147483648"},
        {"{\"small\":1.5}", "small: expected integer, got 1.5"},
        {"{\"large\":9223372036854775808}",
         "large: expected integer from -9223372036854775808 to 9223372036854775807, got 9223372036854775808"},
        {"{\"large\":1E0}", "large: expected integer, got 1E0"},
        {"{\"when\":\"yesterday\"}", "when: expected RFC 3339 time, got \"yesterday\""},
        {"{\"when\":12}", "when: expected RFC 3339 time, got 12"},
        {"{\"colour\":\"red\"}", "colour: expected one of Red, Green, Other, got \"red\""},
        {"{\"colour\":{}}", "colour: expected string, got object"},
        {"{\"labels\":[]}", "labels: expected object, got list"},
        {"{\"labels\":{\"a/b\":1}}", "labels[\"a/b\"]: expected string, got 1"},
        {"{\"amounts\":{\"cpu\":\"1 core\"}}", "amounts[\"cpu\"]: expected quantity, got \"1 core\""},
        {"{\"amounts\":{\"cpu\":true}}", "amounts[\"cpu\"]: expected quantity, got true"},
        {"{\"raw\":\"{}\"}", "raw: expected object, got \"{}\""},
        {"{\"words\":[\"a\",null]}", "words[1]: expected string, got null"},
        {"{\"codes\":[1,256]}", "codes[1]: expected integer from 1 to 255, got 256"},
        {"{\"codes\":[\"1\"]}", "codes[0]: expected integer, got \"1\""},
        {"{\"codes\":1}", "codes: expected list, got 1"},
        {"{\"rules\":[{},3]}", "rules[1]: expected object, got 3"},
        {"{\"rules\":{}}", "rules: expected list, got object"},
        {"{\"parts\":[{\"name\":\"a\"},{\"size\":1}]}", "parts[1].name: missing"},
        {"{\"parts\":[{\"name\":\"a\",\"size\":\"1\"}]}", "parts[0].size: expected integer, got \"1\""},
        {"{\"parts\":[[]]}", "parts[0]: expected object, got list"},
        {"{\"inner\":{\"depth\":11}}", "inner.depth: expected integer from 0 to 10, got 11"},
        {"{\"inner\":{}}", "inner.label: missing"},
        {"{\"text\":\"a\",\"text\":\"b\"}", "text: given twice"},
        {"{\"labels\":{\"a/b\":\"1\",\"a/c\":\"2\",\"a/b\":\"1\"}}", "labels[\"a/b\"]: given twice"},
        {"{\"amounts\":{\"memory\":1,\"cpu\":1,\"pods\":1,\"memory\":2}}", "amounts[\"memory\"]: given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct thing t;
        struct err err = ERR_INIT;
        assert_int_equal(decode(cases[i].text, &t, &err), ERR_INVALID);
        assert_string_equal(err.msg, cases[i].want);
    }
}

// This test must be the last, because it fills the table of names.
static void resources_beyond_the_limit_are_asked_for_but_not_offered(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(64 * 1024);
    struct thing t;
    struct err err = ERR_INIT;
    buf_puts(&text, "{\"amounts\":{\"cpu\":1");
    for (int i = 0; i < RESOURCE_MAX; i++)
        buf_printf(&text, ",\"example.com/%d\":%d", i, i + 1);
    buf_puts(&text, ",\"memory\":5},\"offered\":{\"example.com/new\":1,\"example.com/0\":2}}");
    assert_int_equal(decode(buf_str(&text), &t, &err), 0);
    buf_done(&text);
    assert_int_equal(resources_get(&t.amounts, RESOURCE_CPU), 1000);
    assert_int_equal(resources_get(&t.amounts, RESOURCE_MEMORY), 5000);
    assert_int_equal(resources_get(&t.amounts, RESOURCE_OTHER), RESOURCE_MAX * 1000);
    for (size_t i = 1; i < t.amounts.n; i++)
        assert_true(t.amounts.items[i - 1].id < t.amounts.items[i].id);
    assert_int_equal(resources_get(&t.offered, RESOURCE_OTHER), 0);
    assert_int_equal(resources_get(&t.offered, resource_id("example.com/new")), 1000);
    assert_int_equal(resources_get(&t.offered, resource_id("example.com/0")), 2000);
}

static void what_a_peer_wrote_is_shown_short_and_printable(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(10000);
    struct thing t;
    struct err err = ERR_INIT;
    buf_puts(&text, "{\"labels\":{\"a/");
    for (int i = 0; i < 1000; i++)
        buf_puts(&text, "\xc3\xa9");
    buf_puts(&text, "\":[\"");
    for (int i = 0; i < 1000; i++)
        buf_puts(&text, "v");
    buf_puts(&text, "\"]}}");
    assert_int_equal(decode(buf_str(&text), &t, &err), ERR_INVALID);
    assert_string_equal(err.msg, "labels[\"a/??????????????????????????????????????????????...\"]: "
                                 "expected string, got list");
    buf_reset(&text);
    buf_puts(&text, "{\"small\":\"");
    for (int i = 0; i < 1000; i++)
        buf_puts(&text, "v");
    buf_puts(&text, "\"}");
    assert_int_equal(decode(buf_str(&text), &t, &err), ERR_INVALID);
    assert_string_equal(err.msg, "small: expected integer, got \"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv...");
    buf_done(&text);
}

struct written {
    const char *text, *note, *extra;
    int32_t number, exit_code;
    int64_t since, at;
    enum colour colour;
    struct part *parts;
    size_t n_parts;
    int64_t part_at;
};
#define W(member) offsetof(struct written, member)

// clang-format off
static const struct json_table written_inner_table = JSON_TABLE(struct written,
    {"at", J_TIME, W(part_at), .micro = true});
static const struct json_table written_table = JSON_TABLE(struct written,
    {"text", J_STRING, W(text), .max = 4},
    {"note", J_STRING, W(note), .missing_str = ""},
    {"extra", J_STRING, W(extra), .left_out = true},
    {"number", J_I32, W(number)},
    {"exitCode", J_I32, W(exit_code), .missing = -1},
    {"since", J_TIME, W(since), .since = true},
    {"at", J_TIME, W(at), .micro = true},
    {"colour", J_ENUM, W(colour), .names = colours},
    {"parts", J_LIST, W(parts), .offset_n = W(n_parts), .table = &part_table, .max = 2},
    {"inner", J_OBJECT, .table = &written_inner_table, .needs = "at"});
// clang-format on

static void what_is_written_is_read_again(void **state)
{
    (void)state;
    struct part parts[] = {{"a", 2}, {"b", 1}, {"c", 3}};
    struct written from = {"text", "note", "extra", 7, 0, 60000, 61000, GREEN, parts, 2, 62000}, to = {0};
    const char *text = json_patch(&written_table, "status", &from, &arena);
    struct json *root;
    struct err err = ERR_INIT;
    assert_string_equal(
        text, "{\"status\":{\"text\":\"text\",\"note\":\"note\",\"extra\":\"extra\",\"number\":7,\"exitCode\":0,"
              "\"since\":\"1970-01-01T00:01:00Z\",\"at\":\"1970-01-01T00:01:01.000000Z\",\"colour\":\"Green\","
              "\"parts\":[{\"name\":\"a\",\"size\":2},{\"name\":\"b\",\"size\":null}],"
              "\"inner\":{\"at\":\"1970-01-01T00:01:02.000000Z\"}}}");
    assert_int_equal(json_parse(text, strlen(text), NULL, &arena, &root, &err), 0);
    assert_int_equal(json_decode(&written_table, json_get(root, "status"), "", &to, &arena, &err), 0);
    assert_true(json_same(&written_table, &from, &to));
    assert_int_equal(to.parts[1].size, 1);
    assert_int_equal(to.since, from.since);
}

static void what_there_is_not_is_null_or_left_out_and_what_is_too_long_is_cut(void **state)
{
    (void)state;
    struct part parts[] = {{"a", 2}, {"b", 4}, {"c", 3}};
    struct written none = {.exit_code = -1}, much = {.text = "much more", .parts = parts, .n_parts = 3};
    assert_string_equal(
        json_patch(&written_table, "status", &none, &arena),
        "{\"status\":{\"text\":null,\"note\":\"\",\"number\":0,\"exitCode\":null,\"since\":null,\"at\":null,"
        "\"colour\":\"Red\",\"parts\":null,\"inner\":null}}");
    assert_string_equal(
        json_patch(&written_table, "status", &much, &arena),
        "{\"status\":{\"text\":\"much\",\"note\":\"\",\"number\":0,\"exitCode\":0,\"since\":null,\"at\":null,"
        "\"colour\":\"Red\",\"parts\":[{\"name\":\"a\",\"size\":2},{\"name\":\"b\",\"size\":4}],"
        "\"inner\":null}}");
}

static void what_is_not_written_makes_no_difference(void **state)
{
    (void)state;
    struct written a = {.text = "much more", .since = 1000}, b = {.text = "much less", .since = 2000}, c = b;
    assert_true(json_same(&written_table, &a, &b));
    c.number = 1;
    assert_false(json_same(&written_table, &b, &c));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_member_that_nobody_reads_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(every_kind_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_is_read_again, setup, teardown),
        cmocka_unit_test_setup_teardown(what_there_is_not_is_null_or_left_out_and_what_is_too_long_is_cut, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_not_written_makes_no_difference, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_and_null_members_take_their_defaults, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_name_the_path_and_what_was_there, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_peer_wrote_is_shown_short_and_printable, setup, teardown),
        cmocka_unit_test_setup_teardown(resources_beyond_the_limit_are_asked_for_but_not_offered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
