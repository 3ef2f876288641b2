// SPDX-License-Identifier: Apache-2.0
// tests/golden/watch/<case>/{in.txt,want.txt}: the bytes of a watch and their events. The bytes may be cut anywhere.
#include "operator/kube/stream.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "tests/unit/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20, SMALL = 64 };

// --- watches

// If a guess finds an object that is JSON, the guess is right.
static void assert_guess(const char *line, size_t len, const struct watch_event *want)
{
    struct watch_event e;
    struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    if (watch_event_guess(line, len, &e) && json_parse(e.object, e.object_len, NULL, &a, &root, &err) == 0) {
        assert_int_equal(e.type, want->type);
        assert_ptr_equal(e.object, want->object);
        assert_int_equal(e.object_len, want->object_len);
    }
    arena_done(&a);
}

static int put_event(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    static const char *const names[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    struct buf *out = ctx;
    struct watch_event e;
    if (!whole)
        return watch_event_begins(line, len, &e) ? buf_printf(out, "%s %.12s... (too long)\n", names[e.type], e.object)
                                                 : buf_printf(out, "%.12s... (too long)\n", line);
    if (watch_event_scan(line, len, &e, err) < 0)
        return err->code;
    assert_guess(line, len, &e);
    return buf_printf(out, "%s %.*s\n", names[e.type], (int)e.object_len, e.object);
}

// Feeds the bytes in two pieces, cut at `cut`, or one by one if `cut` is over their number.
static char *watch_events(const char *in, size_t len, size_t cut)
{
    struct line_splitter s;
    struct buf out = BUF_INIT(OUT_MAX);
    struct err err = ERR_INIT;
    line_splitter_init(&s, 512);
    int r = 0;
    if (cut <= len) {
        r = line_splitter_feed(&s, in, cut, put_event, &out, &err);
        if (r == 0)
            r = line_splitter_feed(&s, in + cut, len - cut, put_event, &out, &err);
    } else {
        for (size_t i = 0; i < len && r == 0; i++)
            r = line_splitter_feed(&s, in + i, 1, put_event, &out, &err);
    }
    if (r < 0)
        (void)buf_printf(&out, "%s: %s\n", err_name(r), err.msg);
    else if (s.partial.len)
        (void)buf_printf(&out, "(%zu bytes left)\n", s.partial.len);
    line_splitter_done(&s);
    return buf_take(&out);
}

static char *watch_case(const char *name, const char *in, size_t len)
{
    char *whole = watch_events(in, len, len);
    for (size_t cut = 0; cut <= len + 1; cut++) {
        char *got = watch_events(in, len, cut);
        if (strcmp(got, whole) != 0) {
            fprintf(stderr, "%s, cut at %zu:\n%s", name, cut, got);
            free(whole);
            return got; // not the wanted result
        }
        free(got);
    }
    return whole;
}

static void watches_are_read_as_written(void **state)
{
    (void)state;
    assert_int_equal(golden_run("tests/golden/watch", "in.txt", "want.txt", watch_case), 0);
}

static void lines_as_the_api_server_writes_them_are_guessed(void **state)
{
    (void)state;
    static const struct {
        const char *line, *object; // NULL: no guess
    } cases[] = {
        {"{\"type\":\"ADDED\",\"object\":{}}", "{}"},
        {"{\"type\":\"MODIFIED\",\"object\":{\"a\":{}}}", "{\"a\":{}}"},
        {"{\"type\":\"DELETED\",\"object\":{\"a\":1}}", "{\"a\":1}"},
        {"{\"type\":\"ADDED\",\"object\":{},\"b\":{}}", "{},\"b\":{}"}, // not JSON: scan the line
        {"{\"type\":\"BOOKMARK\",\"object\":{}}", NULL},
        {"{\"type\":\"ERROR\",\"object\":{}}", NULL},
        {"{\"object\":{},\"type\":\"ADDED\"}", NULL},
        {"{\"type\": \"ADDED\",\"object\":{}}", NULL},
        {"{\"type\":\"ADDED\",\"object\":[]}", NULL},
        {"{\"type\":\"ADDED\",\"object\":{", NULL},
        {"{\"type\":\"ADDED\",\"object\":{}", NULL},
        {"{\"type\":\"ADDED\",\"object\":", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct watch_event e;
        bool guessed = watch_event_guess(cases[i].line, strlen(cases[i].line), &e);
        assert_int_equal(guessed, cases[i].object != NULL);
        if (guessed) {
            assert_int_equal(e.object_len, strlen(cases[i].object));
            assert_memory_equal(e.object, cases[i].object, e.object_len);
        }
    }
}

static int count_line(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    (void)line, (void)len, (void)whole, (void)err;
    ++*(int *)ctx;
    return 0;
}

static int put_text(void *ctx, const char *text, size_t len, bool whole, struct err *err)
{
    (void)err;
    return buf_printf(ctx, "%.*s%s|", (int)len, text, whole ? "" : "...");
}

static void of_a_line_over_the_cap_the_beginning_is_handed_out_however_it_comes(void **state)
{
    (void)state;
    for (int size = SMALL - 1; size <= SMALL + 2; size++) {
        char in[2 * SMALL], want[2 * SMALL];
        int len = snprintf(in, sizeof in, "%0*d\nnext\n", size, 0);
        snprintf(want, sizeof want, "%0*d%s|next|", size < SMALL ? size : SMALL, 0, size > SMALL ? "..." : "");
        for (int cut = 0; cut <= len; cut++) {
            struct line_splitter s;
            struct err err = ERR_INIT;
            struct buf out = BUF_INIT(OUT_MAX);
            line_splitter_init(&s, SMALL);
            assert_int_equal(line_splitter_feed(&s, in, (size_t)cut, put_text, &out, &err), 0);
            assert_int_equal(line_splitter_feed(&s, in + cut, (size_t)(len - cut), put_text, &out, &err), 0);
            assert_string_equal(buf_str(&out), want);
            line_splitter_done(&s);
            buf_done(&out);
        }
    }
}

static void the_rest_of_a_line_over_the_cap_is_dropped_with_its_watch(void **state)
{
    (void)state;
    char in[SMALL + 1];
    memset(in, 'x', sizeof in);
    struct line_splitter s;
    struct err err = ERR_INIT;
    int lines = 0;
    line_splitter_init(&s, SMALL);
    assert_int_equal(line_splitter_feed(&s, in, sizeof in, count_line, &lines, &err), 0);
    line_splitter_reset(&s);
    assert_int_equal(line_splitter_feed(&s, "a\n", 2, count_line, &lines, &err), 0);
    assert_int_equal(lines, 2);
    line_splitter_done(&s);
}

static int refuse_line(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    (void)line, (void)len, (void)whole;
    ++*(int *)ctx;
    return err_set(err, ERR_INVALID, "no more");
}

static void the_first_error_of_the_callback_stops_it(void **state)
{
    (void)state;
    struct line_splitter s;
    struct err err = ERR_INIT;
    int lines = 0;
    line_splitter_init(&s, 0);
    assert_int_equal(line_splitter_feed(&s, "a\nb\n", 4, refuse_line, &lines, &err), ERR_INVALID);
    assert_int_equal(lines, 1);
    line_splitter_done(&s);
}

static void a_long_line_does_not_keep_its_memory(void **state)
{
    (void)state;
    enum { LONG = 1 << 20 };
    struct line_splitter s;
    struct err err = ERR_INIT;
    int lines = 0;
    char *line = xmalloc(LONG);
    memset(line, 'x', LONG);
    line_splitter_init(&s, 0);
    assert_int_equal(line_splitter_feed(&s, line, LONG, count_line, &lines, &err), 0);
    assert_int_equal(line_splitter_feed(&s, "\n", 1, count_line, &lines, &err), 0);
    assert_int_equal(lines, 1);
    assert_int_equal(s.partial.size, 0);
    line_splitter_done(&s);
    free(line);
}

// --- lists

static char *list_items(const char *in, size_t len, size_t cut, size_t max_item)
{
    struct list_splitter *s = list_splitter_new(max_item);
    struct buf out = BUF_INIT(OUT_MAX);
    struct err err = ERR_INIT;
    const char *version = NULL, *token = NULL;
    int r = 0;
    if (cut <= len) {
        r = list_splitter_feed(s, in, cut, put_text, &out, &err);
        if (r == 0)
            r = list_splitter_feed(s, in + cut, len - cut, put_text, &out, &err);
    } else {
        for (size_t i = 0; i < len && r == 0; i++)
            r = list_splitter_feed(s, in + i, 1, put_text, &out, &err);
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
    assert_int_equal(list_splitter_feed(s, in, strlen(in), refuse_line, &items, &err), ERR_INVALID);
    assert_int_equal(items, 1);
    list_splitter_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watches_are_read_as_written),
        cmocka_unit_test(lines_as_the_api_server_writes_them_are_guessed),
        cmocka_unit_test(of_a_line_over_the_cap_the_beginning_is_handed_out_however_it_comes),
        cmocka_unit_test(the_rest_of_a_line_over_the_cap_is_dropped_with_its_watch),
        cmocka_unit_test(the_first_error_of_the_callback_stops_it),
        cmocka_unit_test(a_long_line_does_not_keep_its_memory),
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
