// SPDX-License-Identifier: Apache-2.0
#include "common/base/small.h"

#include "common/base/free_list.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void a_block_is_used_by_one_at_a_time(void **state)
{
    (void)state;
    char *a = small_new(1), *b = small_new(SMALL_SIZE);
    small_free(a, 1);
    small_free(b, SMALL_SIZE);
    char *c = small_new(SMALL_SIZE), *d = small_new(100), *e = small_new(1);
    assert_true(c != d && d != e && c != e);
    memset(c, 1, SMALL_SIZE);
    memset(d, 2, 100);
    assert_true(c[0] == 1 && c[SMALL_SIZE - 1] == 1);
    small_free(c, SMALL_SIZE);
    small_free(d, 100);
    small_free(e, 1);
    small_free(NULL, 1);
}

static void longer_ones_are_as_long_as_they_should_be(void **state)
{
    (void)state;
    for (size_t size = SMALL_SIZE - 1; size <= SMALL_SIZE + 1; size++) {
        char *a = small_new(size);
        memset(a, 1, size); // ASan looks on
        small_free(a, size);
    }
}

static void more_than_are_kept_come_and_go(void **state)
{
    static void *blocks[FREE_LIST_MAX + 10];
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
            blocks[i] = small_new(8);
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
            small_free(blocks[i], 8);
    }
}

static void free_takes_them_too(void **state)
{
    (void)state;
    free(small_new(8));
}

static void *give_back(void *block)
{
    small_free(block, 8);
    return small_new(8);
}

static void one_thread_gives_back_what_another_took(void **state)
{
    pthread_t thread;
    void *other;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, give_back, small_new(8)), 0);
    assert_int_equal(pthread_join(thread, &other), 0); // which frees what that thread kept: LSan looks on
    small_free(other, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_used_by_one_at_a_time),
        cmocka_unit_test(longer_ones_are_as_long_as_they_should_be),
        cmocka_unit_test(more_than_are_kept_come_and_go),
        cmocka_unit_test(free_takes_them_too),
        cmocka_unit_test(one_thread_gives_back_what_another_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
