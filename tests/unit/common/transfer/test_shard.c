// SPDX-License-Identifier: Apache-2.0
// Which block of a tensor a rank has, and how blocks are copied out of and into others.
#include "common/transfer/shard.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void is_part(uint64_t len, uint64_t i, uint64_t n, uint64_t want_from, uint64_t want_to)
{
    uint64_t from = 0, to = len;
    shard_narrow(&from, &to, i, n);
    assert_int_equal(from, want_from);
    assert_int_equal(to, want_to);
}

static void parts_are_those_of_torch_chunk(void **state)
{
    (void)state;
    is_part(8, 1, 4, 2, 4);
    is_part(7, 0, 4, 0, 2);
    is_part(7, 3, 4, 6, 7);
    is_part(5, 2, 4, 4, 5);
    is_part(5, 3, 4, 5, 5); // torch gives three chunks here: the last rank has nothing
    is_part(0, 1, 2, 0, 0);
    is_part(UINT64_MAX, 3, 4, UINT64_MAX / 4 * 3 + 3, UINT64_MAX);
}

static void the_first_dimension_of_the_mesh_splits_first(void **state)
{
    (void)state;
    const struct mesh_dim dims[] = {{"dp", 2}, {"tp", 2}};
    const struct mesh mesh = {"train", dims, 2};
    const uint64_t shape[] = {8, 3};
    struct shard s;
    shard_of_rank(&mesh, (const int[]){0, 0}, 1, shape, 2, &s); // dp 0, tp 1
    assert_int_equal(s.from[0], 2);
    assert_int_equal(s.to[0], 4);
    assert_int_equal(s.to[1], 3);
    shard_of_rank(&mesh, (const int[]){-1, 1}, 3, shape, 2, &s);
    assert_int_equal(s.to[0], 8);
    assert_int_equal(s.from[1], 2);
    assert_int_equal(shard_elements(&s), 8);
}

static void copy(const struct shard *part, size_t size, const struct shard *from, const void *source,
                 const struct shard *to, void *destination)
{
    struct shard_runs r;
    for (bool more = shard_runs_first(&r, part, size, from, to); more; more = shard_runs_next(&r))
        memcpy((char *)destination + r.to, (const char *)source + r.from, r.len);
}

static void runs_are_as_long_as_can_be(void **state)
{
    (void)state;
    const struct shard whole = {{0, 0, 0}, {3, 4, 2}, 3}, rows = {{1, 0, 0}, {3, 4, 2}, 3},
                       columns = {{0, 1, 0}, {3, 3, 2}, 3};
    struct shard_runs r;
    assert_true(shard_runs_first(&r, &rows, 2, &whole, &rows));
    assert_int_equal(r.len, 32);
    assert_int_equal(r.from, 16);
    assert_int_equal(r.to, 0);
    assert_false(shard_runs_next(&r));
    assert_true(shard_runs_first(&r, &columns, 2, &whole, &columns));
    assert_int_equal(r.len, 8);
    assert_true(shard_runs_next(&r));
    assert_int_equal(r.from, 20);
    assert_int_equal(r.to, 8);
    assert_true(shard_runs_next(&r));
    assert_false(shard_runs_next(&r));
}

static void a_part_is_packed_and_unpacked(void **state)
{
    (void)state;
    const struct shard whole = {{0, 0, 0}, {3, 4, 2}, 3}, part = {{1, 1, 0}, {3, 3, 2}, 3};
    uint16_t values[24], packed[8], back[24] = {0};
    for (uint16_t i = 0; i < 24; i++)
        values[i] = i;
    copy(&part, 2, &whole, values, &part, packed);
    const uint16_t want[] = {10, 11, 12, 13, 18, 19, 20, 21};
    assert_memory_equal(packed, want, sizeof want);
    copy(&part, 2, &part, packed, &whole, back);
    for (size_t i = 0; i < 24; i++)
        assert_int_equal(back[i], (i >= 10 && i < 14) || (i >= 18 && i < 22) ? values[i] : 0);
}

static void one_element_and_none(void **state)
{
    (void)state;
    const struct shard one = {.n_dims = 0}, none = {{0}, {0}, 1};
    double from = 7, to = 0;
    copy(&one, sizeof from, &one, &from, &one, &to);
    assert_true(to == 7);
    copy(&none, sizeof from, &none, NULL, &none, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_those_of_torch_chunk),
        cmocka_unit_test(the_first_dimension_of_the_mesh_splits_first),
        cmocka_unit_test(runs_are_as_long_as_can_be),
        cmocka_unit_test(a_part_is_packed_and_unpacked),
        cmocka_unit_test(one_element_and_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
