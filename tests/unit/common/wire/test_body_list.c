// SPDX-License-Identifier: Apache-2.0
// Bodies of several ranks in one.
#include "common/wire/body_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct scatter list_of(const char *const *texts, uint32_t n)
{
    struct scatter s = SCATTER_INIT;
    body_list_begin(&s, n);
    for (uint32_t i = 0; i < n; i++) {
        body_list_before(&s, strlen(texts[i]));
        scatter_own(&s, texts[i], strlen(texts[i]));
        body_list_behind(&s, strlen(texts[i]));
    }
    return s;
}

static void bytes_are_as_documented(void **state)
{
    (void)state;
    static const char want[] = "\xff\xff\xff\xff\x02\0\0\0"
                               "\x03\0\0\0\0\0\0\0abc\0\0\0\0\0"
                               "\x08\0\0\0\0\0\0\0"
                               "12345678";
    struct scatter s = list_of((const char *const[]){"abc", "12345678"}, 2);
    assert_int_equal(s.own.len, sizeof want - 1);
    assert_memory_equal(s.own.data, want, sizeof want - 1);
    scatter_done(&s);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "[1]", "1234567", "12345678", "123456789", ""};
    for (uint32_t n = 0; n <= 6; n++) {
        struct scatter s = list_of(texts, n);
        struct body_list l;
        struct scatter_source body;
        struct err err = ERR_INIT;
        assert_true(body_list_is(s.own.data, s.own.len));
        assert_int_equal(body_list_read(s.own.data, s.own.len, &l, &err), 0);
        assert_int_equal(l.n, n);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(body_list_next(&l, &body));
            assert_int_equal(body.len, strlen(texts[i]));
            assert_memory_equal(body.data, texts[i], body.len);
        }
        assert_false(body_list_next(&l, &body));
        scatter_done(&s);
    }
}

// A copy of just that size, so that a read behind it is seen.
static void refused(const char *data, size_t len)
{
    char *copy = malloc(len + !len);
    struct body_list l;
    struct err err = ERR_INIT;
    assert_non_null(copy);
    memcpy(copy, data, len);
    assert_int_equal(body_list_read(copy, len, &l, &err), ERR_INVALID);
    free(copy);
}

static void what_was_cut_or_is_too_long_is_refused(void **state)
{
    (void)state;
    struct scatter s = list_of((const char *const[]){"abc", "12345678"}, 2);
    buf_puts(&s.own, "x");
    for (size_t len = 0; len < s.own.len - 1; len++)
        refused(s.own.data, len);
    refused(s.own.data, s.own.len);
    memset(s.own.data + 8, 0xff, 8); // a length that would go round
    refused(s.own.data, s.own.len - 1);
    s.own.data[8] = (char)0xf8;
    refused(s.own.data, s.own.len - 1);
    refused("[1,2,3,4]", 9);
    assert_false(body_list_is("[1]", 3));
    assert_false(body_list_is("\xff\xff\xff", 3));
    scatter_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_as_documented),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_was_cut_or_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
