// SPDX-License-Identifier: Apache-2.0
#include "common/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    for (size_t size = 0; size < 300; size++) {
        unsigned char *p = arena_alloc(&a, size);
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size); // whatever comes next must not be this
    }
    arena_done(&a);
}

static void a_piece_larger_than_any_block_fits(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, 64);
    char *big = arena_alloc(&a, 1 << 20);
    memset(big, 'x', 1 << 20);
    char *small = arena_strdup(&a, "after");
    assert_string_equal(small, "after");
    assert_true(a.used >= (1 << 20) + 6);
    arena_done(&a);
}

static void done_empties_and_the_arena_may_be_used_again(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    arena_alloc(&a, 100);
    arena_done(&a);
    assert_int_equal(a.used, 0);
    assert_string_equal(arena_strdup(&a, "again"), "again");
    arena_done(&a);
    arena_done(&a);
}

static void strings_are_copied(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    char text[] = "hello";
    char *copy = arena_strdup(&a, text);
    text[0] = 'j';
    assert_string_equal(copy, "hello");
    assert_null(arena_strdup(&a, NULL));
    assert_string_equal(arena_strndup(&a, "hello", 4), "hell");
    assert_string_equal(arena_strndup(&a, "", 0), "");
    assert_string_equal(arena_printf(&a, "%s-%d", "llama", 3), "llama-3");
    assert_memory_equal(arena_memdup(&a, "a\0b", 3), "a\0b", 3);
    arena_done(&a);
}

static void short_strings_lie_side_by_side(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *x = arena_strdup(&a, "ab"), *y = arena_strdup(&a, "c"), *z = arena_printf(&a, "%d", 7);
    assert_ptr_equal(y, x + 3);
    assert_ptr_equal(z, y + 2);
    assert_int_equal(a.used, 7);
    assert_int_equal((uintptr_t)arena_alloc(&a, 1) % 16, 0);
    arena_done(&a);
}

// An object that was built in several blocks takes no more than `used` in one block.
static void used_is_what_one_block_would_take(void **state)
{
    (void)state;
    struct arena a;
    size_t used = 0;
    for (int round = 0; round < 2; round++) {
        arena_init(&a, round == 0 ? 64 : used);
        arena_alloc(&a, 1);
        const void *first = a.head;
        for (size_t i = 0; i < 200; i++) {
            size_t n = i * 7 % 23;
            if (i % 3 == 0)
                memset(arena_alloc(&a, n), 'x', n);
            else
                assert_int_equal(strlen(arena_printf(&a, "%*s", (int)n, "")), n);
        }
        assert_true(round == 0 ? a.head != first : a.head == first);
        used = a.used;
        arena_done(&a);
    }
}

static void a_long_text_is_clipped_between_characters(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const char *word = "caf\xc3\xa9s";
    assert_ptr_equal(arena_clip(&a, word, 6), word);
    assert_string_equal(arena_clip(&a, word, 5), "caf\xc3\xa9");
    assert_string_equal(arena_clip(&a, word, 4), "caf");
    assert_string_equal(arena_clip(&a, word, 0), "");
    assert_string_equal(arena_clip(&a, "\xe2\x82\xac.99", 4), "\xe2\x82\xac.");
    assert_string_equal(arena_clip(&a,
                                   "ab\xff"
                                   "cd",
                                   4),
                        "ab"); // what is not a character ends it, too
    assert_null(arena_clip(&a, NULL, 4));
    arena_done(&a);
}

static void an_arena_may_begin_with_memory_of_its_owner(void **state)
{
    (void)state;
    _Alignas(max_align_t) char memory[256];
    struct arena a;
    memset(memory, 'x', sizeof memory);
    arena_init_in(&a, memory, sizeof memory);
    char *first = arena_alloc(&a, 100);
    assert_true(first >= memory && first + 100 <= memory + sizeof memory);
    for (int i = 0; i < 100; i++)
        assert_int_equal(first[i], 0);
    char *second =
        arena_strdup(&a, "does not fit into what is left of the memory that it began with, nor should it try, "
                         "and so it is put elsewhere, from where it is freed in the end");
    assert_false(second >= memory && second < memory + sizeof memory);
    arena_done(&a);
}

static void arrays_of_nothing_are_fine(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    assert_non_null(arena_array(&a, 0, 8));
    int *v = arena_array(&a, 3, sizeof *v);
    assert_int_equal(v[0] + v[1] + v[2], 0);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(a_piece_larger_than_any_block_fits),
        cmocka_unit_test(done_empties_and_the_arena_may_be_used_again),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(short_strings_lie_side_by_side),
        cmocka_unit_test(used_is_what_one_block_would_take),
        cmocka_unit_test(a_long_text_is_clipped_between_characters),
        cmocka_unit_test(an_arena_may_begin_with_memory_of_its_owner),
        cmocka_unit_test(arrays_of_nothing_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
