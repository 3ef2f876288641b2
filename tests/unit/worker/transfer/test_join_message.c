// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/join_message.h"

#include "common/base/le.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 4, OWN = 2, MOST = 1000, SIZE = 36 + NCCL_ID_SIZE + 4 * MEMBERS };

static void write_valid(char out[SIZE])
{
    int ranks[MEMBERS] = {0, -1, 1, 2};
    const struct join_message m = {
        .number = 7, .n = 3, .pairs = 2, .sizes = {MOST / 2, 10, 5}, .id = {"id"}, .ranks = ranks};
    assert_int_equal(join_message_len(MEMBERS), SIZE);
    join_message_write(&m, MEMBERS, out);
}

static bool is_valid(const char text[SIZE], size_t len, int own)
{
    int ranks[MEMBERS];
    struct join_message m = {.ranks = ranks};
    char *exact = memcpy(malloc(SIZE), text, SIZE); // so that a read behind its end is seen
    bool valid = join_message_read(&m, exact, len, MEMBERS, own, MOST);
    free(exact);
    return valid;
}

static void what_is_written_is_read(void **state)
{
    int ranks[MEMBERS] = {9, 9, 9, 9};
    struct join_message m = {.ranks = ranks};
    char text[SIZE];
    (void)state;
    write_valid(text);
    assert_true(join_message_read(&m, text, SIZE, MEMBERS, OWN, MOST));
    assert_int_equal(m.number, 7);
    assert_int_equal(m.n, 3);
    assert_int_equal(m.pairs, 2);
    assert_int_equal(m.sizes.round, MOST / 2);
    assert_int_equal(m.sizes.packed, 10);
    assert_int_equal(m.sizes.runs, 5);
    assert_string_equal(m.id.bytes, "id");
    assert_memory_equal(ranks, ((const int[]){0, -1, 1, 2}), sizeof ranks);
}

static void another_length_is_refused(void **state)
{
    char text[SIZE];
    (void)state;
    write_valid(text);
    assert_true(is_valid(text, SIZE, OWN));
    assert_false(is_valid(text, SIZE - 1, OWN));
    assert_false(is_valid(text, SIZE - 4, OWN));
    assert_false(is_valid(text, 0, OWN));
}

static void a_member_that_is_outside_is_not_asked(void **state)
{
    char text[SIZE];
    (void)state;
    write_valid(text);
    assert_false(is_valid(text, SIZE, 1));
}

static void numbers_that_contradict_each_other_are_refused(void **state)
{
    static const struct {
        size_t at, size;
        uint64_t value;
    } wrong[] = {
        {0, 8, 0}, // number: none
        {8, 4, 0},
        {8, 4, 2}, // n: a rank is not in it
        {8, 4, MEMBERS + 1},
        {8, 4, UINT32_MAX}, // more than there are
        {12, 4, 0},
        {12, 4, 3},          // pairs: the rounds would be longer than MOST
        {12, 4, UINT32_MAX}, //
        {16, 8, 0},
        {16, 8, MOST / 2 + 1}, // round
        {16, 8, UINT64_MAX},   //
        {32, 4, 0},            // runs: none
        {SIZE - 4, 4, 3},
        {SIZE - 4, 4, INT32_MAX},      // a rank
        {SIZE - 4, 4, UINT32_MAX - 1}, //
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[SIZE];
        write_valid(text);
        if (wrong[i].size == 8)
            le_put_u64(text + wrong[i].at, wrong[i].value);
        else
            le_put_u32(text + wrong[i].at, (uint32_t)wrong[i].value);
        if (is_valid(text, SIZE, OWN))
            fail_msg("%zu: %zu at %zu", i, (size_t)wrong[i].value, wrong[i].at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(another_length_is_refused),
        cmocka_unit_test(a_member_that_is_outside_is_not_asked),
        cmocka_unit_test(numbers_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
