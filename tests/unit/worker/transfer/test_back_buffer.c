// SPDX-License-Identifier: Apache-2.0
// New weights lie beside the old ones until both change places.
#include "worker/transfer/back_buffer.h"

#include "common/base/mem.h"
#include "worker/transfer/own_pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

enum { LONG = (5 << 20) + 12345, ROUNDS = 4, PAGE = 4096 };

static char *map(int flags, size_t len)
{
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

static bool all_are(const char *data, size_t len, int value)
{
    for (size_t i = 0; i < len; i++)
        if (data[i] != (char)value)
            return false;
    return true;
}

static int lay(struct back_buffer *s, void *data, size_t len)
{
    struct err err = ERR_INIT;
    return back_buffer_lay(s, &(struct blocks){&(struct block){data, len, false}, 1, NULL}, &err);
}

static size_t swap(struct back_buffer *s)
{
    struct err err = ERR_INIT;
    size_t copied;
    assert_int_equal(back_buffer_swap(s, &(struct blocks){NULL, 0, NULL}, &copied, &err), 0);
    return copied;
}

// The memory around the block does not change.
static void exchange(struct back_buffer *s, char *block, size_t len, size_t most_copied)
{
    char before = block[-1], after = block[len];
    for (int round = 1; round <= ROUNDS; round++) {
        char was = block[0];
        assert_int_equal(lay(s, block, len), 0);
        memset(back_buffer_at(s, 0), round, len);
        assert_true(all_are(block, len, was));
        assert_true(swap(s) <= most_copied);
        assert_true(all_are(block, len, round));
        assert_int_equal(block[-1], before);
        assert_int_equal(block[len], after);
        back_buffer_rest(s, &(struct blocks){NULL, 0, NULL});
    }
}

static void pages_of_long_blocks_are_exchanged_and_their_ends_copied(void **state)
{
    (void)state;
    const size_t offsets[] = {PAGE, 16, PAGE + 100, (2 << 20) - 8, 2 << 20};
    char *memory = map(MAP_PRIVATE, 2 * LONG);
    for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
        struct back_buffer *s = back_buffer_new(true);
        memset(memory, 'm', 2 * LONG);
        exchange(s, memory + offsets[i], LONG, 2 * PAGE);
        back_buffer_free(s);
        assert_int_equal(memory[offsets[i] - 1], 'm');
        assert_int_equal(memory[offsets[i] + LONG], 'm');
    }
    munmap(memory, 2 * LONG);
}

static void short_and_shared_memory_is_copied(void **state)
{
    (void)state;
    struct back_buffer *s = back_buffer_new(true);
    char *shared = map(MAP_SHARED, 2 * LONG), *small = map(MAP_PRIVATE, 4 * PAGE);
    exchange(s, shared + 64, LONG, LONG);
    exchange(s, small + 64, 2 * PAGE, 2 * PAGE);
    back_buffer_free(s);
    munmap(shared, 2 * LONG);
    munmap(small, 4 * PAGE);
}

// At the address of a block whose pages have changed places before.
static void memory_that_has_become_shared_stays_shared(void **state)
{
    (void)state;
    struct back_buffer *s = back_buffer_new(true);
    char *memory = map(MAP_PRIVATE, LONG + PAGE);
    int file = memfd_create("shared", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, LONG + PAGE), 0);
    exchange(s, memory + 64, LONG, 2 * PAGE);
    assert_ptr_equal(mmap(memory, LONG + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), memory);
    char *other = mmap(NULL, LONG + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_ptr_not_equal(other, MAP_FAILED);
    assert_int_equal(lay(s, memory + 64, LONG), 0);
    memset(back_buffer_at(s, 0), 7, LONG);
    assert_int_equal(swap(s), LONG);
    assert_true(all_are(other + 64, LONG, 7));
    back_buffer_free(s);
    munmap(other, LONG + PAGE);
    munmap(memory, LONG + PAGE);
    close(file);
}

static void what_must_not_move_is_copied(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE, LONG + PAGE);
    struct back_buffer *s = back_buffer_new(false);
    assert_int_equal(lay(s, memory, LONG), 0);
    memset(back_buffer_at(s, 0), 5, LONG);
    assert_int_equal(swap(s), LONG);
    assert_true(all_are(memory, LONG, 5));
    back_buffer_free(s);
    munmap(memory, LONG + PAGE);
}

static void many_blocks_and_empty_ones_have_rooms_of_their_own(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE, 3 * LONG), few[8] = {0};
    const struct block blocks[] = {
        {memory, 100}, {NULL, 0}, {memory + 100, LONG}, {few, sizeof few}, {memory + 100 + LONG, LONG}};
    struct back_buffer *s = back_buffer_new(true);
    struct err err = ERR_INIT;
    for (int round = 1; round <= ROUNDS; round++) {
        assert_int_equal(back_buffer_lay(s, &(struct blocks){blocks, ARRAY_LEN(blocks), NULL}, &err), 0);
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
            if (blocks[i].len)
                memset(back_buffer_at(s, i), round + (int)i, blocks[i].len);
        (void)swap(s);
        for (size_t i = 0; i < ARRAY_LEN(blocks); i++)
            assert_true(all_are(blocks[i].data, blocks[i].len, round + (int)i));
    }
    assert_int_equal(back_buffer_lay(s, &(struct blocks){blocks, 1, NULL}, &err),
                     0); // of others the memory is given back
    back_buffer_free(s);
    munmap(memory, 3 * LONG);
}

static void later_rounds_need_no_page_faults(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE, LONG);
    struct back_buffer *s = back_buffer_new(true);
    struct rusage before, after;
    for (int round = 1; round <= 5; round++) {
        if (round == 3)
            getrusage(RUSAGE_SELF, &before);
        assert_int_equal(lay(s, memory, LONG), 0);
        memset(back_buffer_at(s, 0), round, LONG);
        (void)swap(s);
        assert_int_equal(memory[LONG / 2], round);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_minflt - before.ru_minflt < LONG / PAGE / 4);
    back_buffer_free(s);
    munmap(memory, LONG);
}

struct watcher {
    const char *block;
    atomic_bool over;
};

static void *watch(void *ctx)
{
    struct watcher *w = ctx;
    unsigned sum = 0;
    while (!atomic_load(&w->over))
        for (size_t i = 0; i < LONG; i += PAGE)
            sum += (unsigned char)*(volatile const char *)(w->block + i);
    return sum ? w : NULL;
}

static void other_threads_never_find_a_hole(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE, LONG);
    struct watcher w = {.block = memory};
    struct back_buffer *s = back_buffer_new(true);
    pthread_t thread;
    memset(memory, 1, LONG);
    assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
    for (int round = 0; round < 50; round++) {
        assert_int_equal(lay(s, memory, LONG), 0);
        memset(back_buffer_at(s, 0), round + 1, LONG);
        (void)swap(s);
    }
    atomic_store(&w.over, true);
    pthread_join(thread, NULL);
    back_buffer_free(s);
    munmap(memory, LONG);
}

static bool is_mapped(const char *at)
{
    unsigned char ignored;
    return mincore((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE, &ignored) == 0;
}

// Somebody may still write there.
static void nothing_is_ever_again_where_an_abandoned_room_was(void **state)
{
    (void)state;
    char *memory = map(MAP_PRIVATE, LONG), *small = map(MAP_PRIVATE, PAGE);
    const struct block list[] = {{memory, LONG, false}, {small, PAGE, false}};
    const struct blocks blocks = {list, 2, NULL};
    struct back_buffer *s = back_buffer_new(true);
    struct err err = ERR_INIT;
    assert_int_equal(back_buffer_lay(s, &blocks, &err), 0);
    char *rooms[] = {back_buffer_at(s, 0), back_buffer_at(s, 1)};
    assert_false(back_buffer_was_abandoned(s));
    back_buffer_abandon(s);
    assert_true(back_buffer_was_abandoned(s));
    for (int i = 0; i < 2; i++) {
        struct iovec here = {small, 1}, there = {rooms[i], 1};
        assert_int_equal(process_vm_writev(getpid(), &here, 1, &there, 1, 0), -1);
        assert_true(is_mapped(rooms[i]));
    }
    assert_int_equal(back_buffer_lay(s, &blocks, &err), 0);
    for (int i = 0; i < 2; i++)
        assert_ptr_not_equal(back_buffer_at(s, (size_t)i), rooms[i]);
    memset(back_buffer_at(s, 0), 1, LONG);
    memset(back_buffer_at(s, 1), 1, PAGE);
    (void)swap(s);
    assert_true(all_are(memory, LONG, 1) && all_are(small, PAGE, 1));
    back_buffer_free(s);
    munmap(memory, LONG);
    munmap(small, PAGE);
}

static void only_private_memory_of_no_file_is_ones_own(void **state)
{
    (void)state;
    char *own = map(MAP_PRIVATE, 4 * PAGE), *shared = map(MAP_SHARED, PAGE), *constant = map(MAP_PRIVATE, PAGE);
    assert_int_equal(mprotect(constant, PAGE, PROT_READ), 0);
    struct own_pages *p = own_pages_read();
    assert_true(own_pages_have(p, own + 5, 3 * PAGE));
    assert_false(own_pages_have(p, shared, PAGE));
    assert_false(own_pages_have(p, constant, PAGE));
    assert_false(own_pages_have(p, (const void *)(uintptr_t)&only_private_memory_of_no_file_is_ones_own, 1));
    assert_false(own_pages_have(p, NULL, 1));
    own_pages_free(p);
    munmap(own, 4 * PAGE);
    munmap(shared, PAGE);
    munmap(constant, PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_of_long_blocks_are_exchanged_and_their_ends_copied),
        cmocka_unit_test(short_and_shared_memory_is_copied),
        cmocka_unit_test(memory_that_has_become_shared_stays_shared),
        cmocka_unit_test(what_must_not_move_is_copied),
        cmocka_unit_test(many_blocks_and_empty_ones_have_rooms_of_their_own),
        cmocka_unit_test(later_rounds_need_no_page_faults),
        cmocka_unit_test(other_threads_never_find_a_hole),
        cmocka_unit_test(nothing_is_ever_again_where_an_abandoned_room_was),
        cmocka_unit_test(only_private_memory_of_no_file_is_ones_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
