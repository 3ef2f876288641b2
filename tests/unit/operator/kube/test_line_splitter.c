// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/line_splitter.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_MAX = 4096, SMALL = 64 };

static int count_line(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    (void)line, (void)len, (void)whole, (void)err;
    ++*(int *)ctx;
    return 0;
}

static int put_line(void *ctx, const char *line, size_t len, bool whole, struct err *err)
{
    (void)err;
    return buf_printf(ctx, "%.*s%s|", (int)len, line, whole ? "" : "...");
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
            assert_int_equal(line_splitter_feed(&s, in, (size_t)cut, put_line, &out, &err), 0);
            assert_int_equal(line_splitter_feed(&s, in + cut, (size_t)(len - cut), put_line, &out, &err), 0);
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
    assert_int_equal(s.line.begun.size, 0);
    line_splitter_done(&s);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_line_over_the_cap_the_beginning_is_handed_out_however_it_comes),
        cmocka_unit_test(the_rest_of_a_line_over_the_cap_is_dropped_with_its_watch),
        cmocka_unit_test(the_first_error_of_the_callback_stops_it),
        cmocka_unit_test(a_long_line_does_not_keep_its_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
