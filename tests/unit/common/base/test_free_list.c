// SPDX-License-Identifier: Apache-2.0
#include "common/base/free_list.h"

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
    struct free_list r = FREE_LIST_INIT;
    (void)state;
    char *a = free_list_take(&r, SIZE), *b = free_list_take(&r, SIZE);
    free_list_give(&r, a);
    free_list_give(&r, b);
    char *c = free_list_take(&r, SIZE), *d = free_list_take(&r, SIZE), *e = free_list_take(&r, SIZE);
    assert_true(c != d && d != e && c != e);
    memset(c, 1, SIZE);
    memset(d, 2, SIZE);
    memset(e, 3, SIZE);
    assert_true(c[0] == 1 && c[SIZE - 1] == 1 && d[SIZE - 1] == 2);
    free_list_give(&r, c);
    free_list_give(&r, d);
    free_list_done(&r);
    free(e); // what is out is its owner's
}

static void only_so_many_are_kept(void **state)
{
    struct free_list r = FREE_LIST_INIT;
    static void *blocks[FREE_LIST_MAX + 10];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        blocks[i] = free_list_take(&r, SIZE);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
        free_list_give(&r, blocks[i]);
    assert_true(r.n <= FREE_LIST_MAX);
    free_list_give(&r, NULL);
    free_list_done(&r);
    assert_int_equal(r.n, 0);
}

static void blocks_may_be_tiny(void **state)
{
    struct free_list r = FREE_LIST_INIT;
    (void)state;
    free_list_give(&r, free_list_take(&r, 1));
    free_list_done(&r);
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
