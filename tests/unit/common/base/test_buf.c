// SPDX-License-Identifier: Apache-2.0
#include "common/base/buf.h"

#include "common/base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static void an_empty_buffer_reads_as_an_empty_string(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(10);
    assert_string_equal(buf_str(&b), "");
    buf_done(&b);
}

static void it_grows_and_stays_terminated(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100000);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(buf_putc(&b, (char)('a' + i % 26)), 0);
        assert_int_equal(b.data[b.len], '\0');
    }
    assert_int_equal(b.len, 10000);
    assert_int_equal(buf_printf(&b, "%d", 42), 0);
    assert_string_equal(b.data + 10000, "42");
    buf_done(&b);
}

static void the_cap_is_exact_and_a_write_over_it_changes_nothing(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(5);
    assert_int_equal(buf_puts(&b, "12345"), 0);
    assert_false(b.over);
    assert_int_equal(buf_putc(&b, '6'), ERR_LIMIT);
    assert_string_equal(buf_str(&b), "12345");
    assert_true(b.over);
    buf_consume(&b, 5);
    assert_int_equal(buf_puts(&b, "x"), ERR_LIMIT); // over stays, so that one check at the end is enough
    buf_reset(&b);
    assert_int_equal(buf_puts(&b, "x"), 0);
    assert_int_equal(buf_printf(&b, "%s", "12345"), ERR_LIMIT);
    assert_string_equal(buf_str(&b), "x");
    buf_done(&b);
}

static void a_size_that_would_overflow_is_refused(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100);
    buf_puts(&b, "x");
    assert_int_equal(buf_reserve(&b, SIZE_MAX), ERR_LIMIT);
    buf_done(&b);
}

static void consume_drops_the_front(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100);
    buf_consume(&b, 0);
    buf_append(&b, "one\0two", 7);
    buf_consume(&b, 4);
    assert_int_equal(b.len, 3);
    assert_string_equal(buf_str(&b), "two");
    buf_consume(&b, 3);
    assert_string_equal(buf_str(&b), "");
    buf_done(&b);
}

static void take_hands_the_bytes_over(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100);
    char *nothing = buf_take(&b);
    assert_string_equal(nothing, "");
    free(nothing);
    buf_puts(&b, "mine");
    char *s = buf_take(&b);
    assert_string_equal(s, "mine");
    assert_int_equal(b.len, 0);
    assert_int_equal(b.cap, 100);
    free(s);
    buf_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_reads_as_an_empty_string),
        cmocka_unit_test(it_grows_and_stays_terminated),
        cmocka_unit_test(the_cap_is_exact_and_a_write_over_it_changes_nothing),
        cmocka_unit_test(a_size_that_would_overflow_is_refused),
        cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(take_hands_the_bytes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
