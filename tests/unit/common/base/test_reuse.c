// SPDX-License-Identifier: Apache-2.0
#include "common/base/reuse.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { SIZE = 100 };

static void blocks_are_not_handed_out_twice(void **state)
{
    struct reuse r = REUSE_INIT;
    (void)state;
    char *a = reuse_take(&r, SIZE), *b = reuse_take(&r, SIZE);
    reuse_give(&r, a);
    reuse_give(&r, b);
    char *c = reuse_take(&r, SIZE), *d = reuse_take(&r, SIZE), *e = reuse_take(&r, SIZE);
    assert_true(c != d && d != e && c != e);
    memset(c, 1, SIZE);
    memset(d, 2, SIZE);
    memset(e, 3, SIZE);
    assert_true(c[0] == 1 && c[SIZE - 1] == 1 && d[SIZE - 1] == 2);
    reuse_give(&r, c);
    reuse_give(&r, d);
    reuse_done(&r);
    free(e); // what is out is its owner's
}

static void only_so_many_are_kept(void **state)
{
    struct reuse r = REUSE_INIT;
    static void *blocks[REUSE_MAX + 10];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        blocks[i] = reuse_take(&r, SIZE);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        reuse_give(&r, blocks[i]);
    assert_true(r.n <= REUSE_MAX);
    reuse_give(&r, NULL);
    reuse_done(&r);
    assert_int_equal(r.n, 0);
}

static void blocks_may_be_tiny(void **state)
{
    struct reuse r = REUSE_INIT;
    (void)state;
    reuse_give(&r, reuse_take(&r, 1));
    reuse_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_not_handed_out_twice),
        cmocka_unit_test(only_so_many_are_kept),
        cmocka_unit_test(blocks_may_be_tiny),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
