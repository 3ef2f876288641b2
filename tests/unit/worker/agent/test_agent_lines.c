// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/lines.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct lines lines;
    struct buf out;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    lines_init(&f->lines, "[rank 7] ");
    f->out = BUF_INIT(64 * 1024 * 1024);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    lines_done(&f->lines);
    buf_done(&f->out);
    free(f);
    return 0;
}

static void add(struct fixture *f, const char *text)
{
    lines_add(&f->lines, text, strlen(text), &f->out);
}

static void every_line_gets_the_name_in_front(void **state)
{
    struct fixture *f = *state;
    add(f, "one\ntwo\n\nfour\n");
    assert_string_equal(buf_str(&f->out), "[rank 7] one\n[rank 7] two\n[rank 7] \n[rank 7] four\n");
    assert_false(lines_partial(&f->lines));
}

static void a_line_may_come_in_pieces(void **state)
{
    struct fixture *f = *state;
    add(f, "lo");
    add(f, "ss: 0");
    assert_string_equal(buf_str(&f->out), "");
    assert_true(lines_partial(&f->lines));
    add(f, ".5\nnext");
    assert_string_equal(buf_str(&f->out), "[rank 7] loss: 0.5\n");
}

static void a_line_without_an_end_is_ended_by_a_flush_and_only_once(void **state)
{
    struct fixture *f = *state;
    add(f, "no newline");
    lines_flush(&f->lines, &f->out);
    lines_flush(&f->lines, &f->out);
    assert_string_equal(buf_str(&f->out), "[rank 7] no newline\n");
}

static void bytes_of_any_value_pass(void **state)
{
    struct fixture *f = *state;
    static const char bytes[] = "\0\xff\x01\r\xc3\n";
    lines_add(&f->lines, bytes, 6, &f->out);
    assert_int_equal(f->out.len, strlen("[rank 7] ") + 6);
    assert_memory_equal(f->out.data + strlen("[rank 7] "), bytes, 6);
}

// The input is cut at different places. The lines are always the same, each at most LINES_MAX long, and no byte is
// lost.
static void a_line_over_64_kib_goes_on_in_the_next(void **state)
{
    struct fixture *f = *state;
    static const size_t pieces[] = {1, 1000, LINES_MAX - 1, LINES_MAX, LINES_MAX + 1, 200 * 1024};
    size_t total = 2 * LINES_MAX + 5, name = strlen("[rank 7] ");
    _cleanup_(free_p) char *text = xmalloc(total + 1);
    memset(text, 'x', total);
    text[total] = '\n';
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        buf_reset(&f->out);
        for (size_t at = 0; at <= total; at += pieces[i])
            lines_add(&f->lines, text + at, MIN(pieces[i], total + 1 - at), &f->out);
        assert_int_equal(f->out.len, total + 3 * (name + 1));
        assert_int_equal(f->out.data[name + LINES_MAX], '\n');
        assert_int_equal(f->out.data[2 * (name + LINES_MAX) + 1], '\n');
        assert_false(lines_partial(&f->lines));
    }
}

static void a_line_of_exactly_64_kib_is_one_line(void **state)
{
    struct fixture *f = *state;
    _cleanup_(free_p) char *text = xmalloc(LINES_MAX);
    memset(text, 'x', LINES_MAX);
    lines_add(&f->lines, text, LINES_MAX, &f->out);
    add(f, "\nafter\n");
    assert_int_equal(f->out.len, LINES_MAX + strlen("[rank 7] \n[rank 7] after\n"));
}

static void a_line_for_which_there_is_no_room_is_dropped_whole(void **state)
{
    struct fixture *f = *state;
    struct buf small = BUF_INIT(24);
    const char *text = "first\na second line\n";
    lines_add(&f->lines, text, strlen(text), &small);
    assert_string_equal(buf_str(&small), "[rank 7] first\n");
    buf_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_line_gets_the_name_in_front, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_may_come_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_without_an_end_is_ended_by_a_flush_and_only_once, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_of_any_value_pass, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_over_64_kib_goes_on_in_the_next, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_of_exactly_64_kib_is_one_line, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_for_which_there_is_no_room_is_dropped_whole, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
