// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "common/base/copy.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

// In front of and behind what is copied; the sanitizer looks beyond.
enum { GUARD = 64 };

static void check(size_t len, size_t from_shift, size_t to_shift)
{
    char *from = xmalloc(len + from_shift), *to = xcalloc(1, GUARD + to_shift + len + GUARD);
    for (size_t i = 0; i < len; i++)
        from[from_shift + i] = (char)(i * 31 + i / 4096 + 1);
    char *begin = to + GUARD + to_shift;
    copy_bytes(begin, from + from_shift, len);
    assert_memory_equal(begin, from + from_shift, len);
    for (int i = 1; i <= GUARD; i++)
        assert_int_equal(begin[-i], 0);
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(begin[len + (size_t)i], 0);
    free(from);
    free(to);
}

static void test_short(void **state)
{
    (void)state;
    copy_bytes(NULL, NULL, 0);
    check(1, 0, 0);
    check(COPY_LONG - 1, 3, 5);
}

// Lengths around whole rounds and lines, at any address.
static void test_long(void **state)
{
    static const size_t more[] = {0, 1, 63, 64, 4095, 16383, 16384, 16447};
    (void)state;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        check(COPY_LONG + more[i], 0, 0);
        check(COPY_LONG + more[i], i, 7 * i + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
