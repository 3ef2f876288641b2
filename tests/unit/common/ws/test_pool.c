// SPDX-License-Identifier: Apache-2.0
#include "common/ws/pool.h"

#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/ws/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEPS = 16 };

static struct pool *pool_of(size_t steps)
{
    struct err err = ERR_INIT;
    struct pool *p = pool_new(steps * POOL_STEP, &err);
    if (!p)
        fail_msg("%s", err.msg);
    return p;
}

static void what_is_free_is_taken_from_the_lowest_address(void **state)
{
    (void)state;
    struct pool *p = pool_of(STEPS);
    char *a = pool_take(p, 1), *b = pool_take(p, POOL_STEP + 1), *c = pool_take(p, POOL_STEP);
    char *rest = pool_take(p, (STEPS - 4) * POOL_STEP);
    assert_ptr_equal(a, pool_base(p));
    assert_ptr_equal(b, a + POOL_STEP);
    assert_ptr_equal(c, b + 2 * POOL_STEP);
    assert_ptr_equal(rest, c + POOL_STEP);
    pool_give(p, rest);
    pool_give(p, a);
    pool_give(p, c);
    assert_ptr_equal(pool_take(p, 2 * POOL_STEP), c); // the first place is too small
    assert_ptr_equal(pool_take(p, POOL_STEP), a);
    pool_free(p);
}

static void there_is_an_end(void **state)
{
    (void)state;
    struct pool *p = pool_of(STEPS);
    assert_null(pool_take(p, 0));
    assert_null(pool_take(p, STEPS * POOL_STEP + 1));
    assert_null(pool_take(p, SIZE_MAX));
    void *all = pool_take(p, STEPS * POOL_STEP);
    assert_non_null(all);
    assert_null(pool_take(p, 1));
    pool_give(p, all);
    assert_ptr_equal(pool_take(p, STEPS * POOL_STEP), all);
    pool_free(p);
}

// Compared with a table of the owners of all bytes.
static void nothing_is_handed_out_twice(void **state)
{
    (void)state;
    struct pool *p = pool_of(STEPS);
    struct rand rnd;
    struct {
        char *data;
        size_t len;
    } has[STEPS] = {{0}};
    rand_seed(&rnd, 7);
    for (int i = 0; i < 20000; i++) {
        size_t k = rand_below(&rnd, STEPS);
        if (has[k].data) {
            for (size_t j = 0; j < has[k].len; j += POOL_STEP)
                assert_int_equal(has[k].data[j], (char)k);
            pool_give(p, has[k].data);
            has[k].data = NULL;
        } else {
            has[k].len = 1 + rand_below(&rnd, 4 * POOL_STEP);
            has[k].data = pool_take(p, has[k].len);
            for (size_t j = 0; has[k].data && j < has[k].len; j += POOL_STEP)
                has[k].data[j] = (char)k;
        }
    }
    pool_free(p);
}

static void another_process_reads_what_is_written(void **state)
{
    (void)state;
    struct pool *p = pool_of(STEPS);
    struct err err = ERR_INIT;
    struct area *a = memory_open(getpid(), pool_fd(p), STEPS * POOL_STEP, false, &err);
    assert_non_null(a);
    char *data = pool_take(p, 100);
    memcpy(data, "hello", 6);
    assert_string_equal(a->base + (data - pool_base(p)), "hello");
    pool_free(p); // a process that has mapped it keeps it
    assert_string_equal(a->base, "hello");
    area_unref(a);
}

static void refused(int fd, size_t size, int code, const char *why)
{
    struct err err = ERR_INIT;
    assert_null(memory_open(getpid(), fd, size, false, &err));
    assert_int_equal(err.code, code);
    if (!strstr(err.msg, why))
        fail_msg("%s", err.msg);
}

// It could be truncated, and a reader would then die of SIGBUS.
static void what_could_be_taken_away_is_not_mapped(void **state)
{
    (void)state;
    int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, POOL_STEP), 0);
    refused(fd, POOL_STEP, ERR_PROTO, "sealed against shrinking and growing");
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    refused(fd, POOL_STEP, ERR_PROTO, "sealed against shrinking and growing");
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    refused(fd, 2 * POOL_STEP, ERR_PROTO, "bytes of shared memory, but it has");
    refused(fd, 0, ERR_PROTO, "bytes of shared memory, but it has");
    close(fd);
    refused(fd, POOL_STEP, ERR_UNAVAILABLE, "cannot open");
    refused(-1, POOL_STEP, ERR_UNAVAILABLE, "cannot open");
}

static void what_is_no_memory_is_not_even_opened(void **state)
{
    (void)state;
    int ends[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    refused(ends[0], POOL_STEP, ERR_PROTO, "is not a memfd");
    refused(file, POOL_STEP, ERR_PROTO, "is not a memfd");
    close(ends[0]);
    close(ends[1]);
    close(file);
}

static void a_pool_cannot_shrink(void **state)
{
    (void)state;
    struct pool *p = pool_of(STEPS);
    assert_int_equal(ftruncate(pool_fd(p), 0), -1);
    pool_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_free_is_taken_from_the_lowest_address),
        cmocka_unit_test(there_is_an_end),
        cmocka_unit_test(nothing_is_handed_out_twice),
        cmocka_unit_test(another_process_reads_what_is_written),
        cmocka_unit_test(what_could_be_taken_away_is_not_mapped),
        cmocka_unit_test(what_is_no_memory_is_not_even_opened),
        cmocka_unit_test(a_pool_cannot_shrink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
