// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/tail.h"

#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct tail tail;
static struct buf got;

static int setup(void **state)
{
    (void)state;
    tail = (struct tail){0};
    got = BUF_INIT(2 * TAIL_BYTES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_done(&got);
    return 0;
}

static const char *text(void)
{
    buf_reset(&got);
    tail_get(&tail, &got);
    return buf_str(&got);
}

static void add(const char *s)
{
    tail_add(&tail, s, strlen(s));
}

static void what_fits_is_kept_as_it_was(void **state)
{
    (void)state;
    assert_string_equal(text(), "");
    add("Traceback:\n");
    add("  oops");
    assert_string_equal(text(), "Traceback:\n  oops");
}

static void at_most_eighty_lines_are_kept(void **state)
{
    (void)state;
    char line[32];
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        add(line);
    }
    assert_memory_equal(text(), "line 120\nline 121\n", 18);
    assert_string_equal(got.data + got.len - 9, "line 199\n");
}

static void what_is_cut_begins_at_a_line(void **state)
{
    (void)state;
    char line[102];
    memset(line, 'x', sizeof line);
    line[100] = '\n';
    line[101] = '\0';
    for (int i = 0; i < 100; i++)
        add(line);
    assert_int_equal(strlen(text()) % 101, 0);
    assert_true(got.len > TAIL_BYTES - 2 * 101 && got.len <= TAIL_BYTES);
}

static void of_a_line_longer_than_everything_the_end_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        add("0123456789");
    add("the end");
    assert_int_equal(strlen(text()), TAIL_BYTES);
    assert_string_equal(got.data + got.len - 10, "789the end");
    add("\n");
    assert_string_equal(text() + TAIL_BYTES - 11, "789the end\n");
}

// Compares with a plain copy of everything.
static void it_is_the_end_of_all_that_was_added(void **state)
{
    (void)state;
    static char all[64 * 1024];
    struct rand r;
    rand_seed(&r, 4);
    for (size_t n, len = 0; (n = rand_below(&r, 5000)) + len < sizeof all; len += n) {
        for (size_t i = 0; i < n; i++)
            all[len + i] = rand_below(&r, 60) == 0 ? '\n' : (char)('a' + rand_below(&r, 26));
        tail_add(&tail, all + len, n);
        size_t got_len = strlen(text());
        assert_true(got_len <= TAIL_BYTES && got_len <= len + n);
        assert_memory_equal(got.data, all + len + n - got_len, got_len);
        assert_true(got_len == len + n || all[len + n - got_len - 1] == '\n');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_fits_is_kept_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(at_most_eighty_lines_are_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_cut_begins_at_a_line, setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_line_longer_than_everything_the_end_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_the_end_of_all_that_was_added, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
