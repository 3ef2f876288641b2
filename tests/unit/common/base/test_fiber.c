// SPDX-License-Identifier: Apache-2.0
// Functions that stop in the middle: how far they go each time, and that they find everything as they left it.
#include "common/base/fiber.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/json_scan.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG ((size_t)1 << 20)

struct steps {
    size_t each, n, done;
};

static void take_steps(void *ctx)
{
    struct steps *s = ctx;
    for (; s->done < s->n; s->done++)
        fiber_spend(s->each);
}

static unsigned runs_of(void (*fn)(void *ctx), void *ctx, size_t units)
{
    struct fiber *f = fiber_new(fn, ctx);
    unsigned n = 1;
    while (!fiber_run(f, units))
        n++;
    assert_null(fiber_running);
    return n;
}

static void a_function_goes_on_for_what_it_may_spend(void **state)
{
    (void)state;
    struct steps s = {.each = 10, .n = 100};
    struct fiber *f = fiber_new(take_steps, &s);
    assert_int_equal(s.done, 0);
    for (size_t i = 1; i <= 4; i++) {
        assert_false(fiber_run(f, 250));
        assert_in_range(s.done, 25 * i - 1, 25 * i);
    }
    assert_true(fiber_run(f, 250));
    assert_int_equal(s.done, s.n);
}

static void what_costs_more_than_it_may_spend_is_paid_later(void **state)
{
    (void)state;
    assert_int_equal(runs_of(take_steps, &(struct steps){.each = 1000, .n = 2}, 100), 21);
}

static void outside_nothing_stops(void **state)
{
    (void)state;
    struct steps s = {.each = LONG, .n = 100};
    take_steps(&s);
    assert_int_equal(s.done, s.n);
}

static void several_go_on_in_turns(void **state)
{
    (void)state;
    struct steps s[3] = {{.each = 1, .n = 10}, {.each = 1, .n = 20}, {.each = 1, .n = 30}};
    struct fiber *f[3];
    size_t left = ARRAY_LEN(f);
    for (size_t i = 0; i < ARRAY_LEN(f); i++)
        f[i] = fiber_new(take_steps, &s[i]);
    while (left)
        for (size_t i = 0; i < ARRAY_LEN(f); i++)
            if (f[i] && fiber_run(f[i], 4)) {
                f[i] = NULL;
                left--;
            }
    for (size_t i = 0; i < ARRAY_LEN(f); i++)
        assert_int_equal(s[i].done, s[i].n);
}

// Long work stops often enough, and has the same result as in one go.

struct long_text {
    char *text;
    size_t len;
    struct arena a;
    int result;
    const char *string; // of the first member
};

static void parse(void *ctx)
{
    struct long_text *t = ctx;
    struct err err = ERR_INIT;
    struct json *root;
    t->result = json_parse(t->text, t->len, NULL, &t->a, &root, &err);
    if (t->result == 0)
        t->string = json_str(root->child, &t->a);
}

static void scan(void *ctx)
{
    struct long_text *t = ctx;
    struct json_scan s;
    struct json_item item;
    t->result = json_scan_begin(&s, t->text, t->len);
    while (t->result > 0)
        t->result = json_scan_next(&s, &item);
}

static void in_steps(const char *what, void (*fn)(void *ctx), const char *begin, const char *again, const char *end)
{
    struct buf text = BUF_INIT(4 * LONG);
    buf_puts(&text, begin);
    while (text.len < LONG)
        buf_puts(&text, again);
    buf_puts(&text, end);
    struct long_text whole = {.text = text.data, .len = text.len}, cut = whole;
    fn(&whole);
    unsigned n = runs_of(fn, &cut, FIBER_STEP);
    if (n < LONG / FIBER_STEP || whole.result != cut.result || whole.result < 0)
        fail_msg("%s: %u steps, %d and %d", what, n, whole.result, cut.result);
    if (whole.string)
        assert_string_equal(whole.string, cut.string);
    arena_done(&whole.a);
    arena_done(&cut.a);
    buf_done(&text);
}

static void long_json_is_read_in_steps(void **state)
{
    (void)state;
    static const struct {
        const char *what, *begin, *again, *end;
    } texts[] = {
        {"a plain string", "{\"a\":\"", "0123456789", "\"}"},
        {"escapes", "{\"a\":\"", "\\n\\\"\\u00e9", "\"}"},
        {"not ASCII", "{\"a\":\"", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"}"},
        {"blanks", "{\"a\":", "    \n", "\"x\"}"},
        {"digits", "{\"a\":[", "1234567890", "]}"},
        {"many members", "{\"a\":\"x\"", ",\"0123456789abcdefghijklmnopqrstuvwxyz\":1", "}"},
        {"a list of strings", "{\"a\":[\"x\"", ",\"0123456789abcdefghijklmnopqrstuvwxyz\"", "]}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        in_steps(texts[i].what, parse, texts[i].begin, texts[i].again, texts[i].end);
        in_steps(texts[i].what, scan, texts[i].begin, texts[i].again, texts[i].end);
    }
}

static void the_stack_is_enough_for_the_deepest_json(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(LONG);
    for (size_t i = 0; i < JSON_DEPTH_MAX; i++)
        buf_puts(&text, i % 2 ? "[1," : "{\"a\":");
    buf_puts(&text, "\"\\u00e9\"");
    for (size_t i = JSON_DEPTH_MAX; i > 0; i--)
        buf_puts(&text, i % 2 ? "}" : "]");
    struct long_text deep = {.text = text.data, .len = text.len};
    assert_true(runs_of(parse, &deep, 64) > JSON_DEPTH_MAX);
    assert_int_equal(deep.result, 0);
    arena_done(&deep.a);
    buf_done(&text);
}

static void broken_characters_are_found_at_every_step(void **state)
{
    (void)state;
    for (size_t at = FIBER_STEP - 3; at < FIBER_STEP + 4; at++) {
        struct buf text = BUF_INIT(LONG);
        struct err err = ERR_INIT;
        struct arena a = ARENA_INIT;
        struct json *root;
        buf_puts(&text, "\"");
        while (text.len < 2 * FIBER_STEP)
            buf_puts(&text, "\xe2\x82\xac");
        buf_puts(&text, "\"");
        assert_int_equal(json_parse(text.data, text.len, NULL, &a, &root, &err), 0);
        text.data[at] = '\xff';
        assert_int_equal(json_parse(text.data, text.len, NULL, &a, &root, &err), ERR_INVALID);
        arena_done(&a);
        buf_done(&text);
    }
}

static void copy_long(void *ctx)
{
    char **at = ctx;
    fiber_zero(at[0], LONG);
    fiber_copy(at[0], at[1], LONG);
    assert_int_equal(fiber_strlen(at[0]), LONG - 1);
    assert_true(fiber_equal(at[0], at[1], LONG));
}

static void long_copies_are_made_in_steps(void **state)
{
    (void)state;
    char *at[2] = {xmalloc(LONG), xmalloc(LONG)};
    memset(at[1], 'x', LONG - 1);
    at[1][LONG - 1] = '\0';
    assert_in_range(runs_of(copy_long, at, FIBER_STEP), 4 * LONG / FIBER_STEP, 4 * LONG / FIBER_STEP + 2);
    free(at[0]);
    free(at[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_goes_on_for_what_it_may_spend),
        cmocka_unit_test(what_costs_more_than_it_may_spend_is_paid_later),
        cmocka_unit_test(outside_nothing_stops),
        cmocka_unit_test(several_go_on_in_turns),
        cmocka_unit_test(long_json_is_read_in_steps),
        cmocka_unit_test(the_stack_is_enough_for_the_deepest_json),
        cmocka_unit_test(broken_characters_are_found_at_every_step),
        cmocka_unit_test(long_copies_are_made_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
