// SPDX-License-Identifier: Apache-2.0
// tests/golden/watch/<case>/{in.txt,want.txt}: the bytes of a watch and their events. The bytes may be cut anywhere.
#include "operator/kube/watch_event.h"

#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/kube/line_splitter.h"
#include "tests/unit/support/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 1 << 20 };

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
    else if (s.line.begun.len)
        (void)buf_printf(&out, "(%zu bytes left)\n", s.line.begun.len);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watches_are_read_as_written),
        cmocka_unit_test(lines_as_the_api_server_writes_them_are_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
