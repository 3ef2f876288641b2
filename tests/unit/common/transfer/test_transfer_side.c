// SPDX-License-Identifier: Apache-2.0
// A group's description of its weights arrives unchanged, and nonsense is refused.
#include "common/transfer/transfer_side.h"

#include "common/base/mem.h"
#include "common/base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const struct mesh_dim dims[] = {{"dp", 2}, {"tp", 3}};
static const struct mesh mesh = {"actor", dims, 2};
static const uint64_t matrix[] = {8, 1ull << 40};
static const struct transfer_tensor tensors[] = {
    {"layers.0.up", SAFETENSORS_BF16, matrix, 2, (const int[]){-1, 1}},
    {"scale", SAFETENSORS_F32, NULL, 0, (const int[]){-1, -1}},
    {"norm", SAFETENSORS_I64, matrix, 1, (const int[]){0, -1}},
};
static const struct transfer_side side = {"actor", &mesh, tensors, ARRAY_LEN(tensors)};

static void write(const struct transfer_side *s, struct buf *out)
{
    struct err err = ERR_INIT;
    *out = BUF_INIT(TRANSFER_SIDE_MAX);
    assert_int_equal(transfer_side_write(s, out, &err), 0);
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct transfer_side back;
    struct buf text;
    write(&side, &text);
    assert_int_equal(transfer_side_read(text.data, text.len, "actor", &a, &back, &err), 0);
    assert_int_equal(back.mesh->n_dims, 2);
    assert_string_equal(back.mesh->dims[1].name, "tp");
    assert_int_equal(transfer_side_world(&back), 6);
    assert_int_equal(back.n, side.n);
    for (size_t i = 0; i < side.n; i++) {
        assert_string_equal(back.tensors[i].name, tensors[i].name);
        assert_int_equal(back.tensors[i].dtype, tensors[i].dtype);
        assert_int_equal(back.tensors[i].n_dims, tensors[i].n_dims);
        if (tensors[i].n_dims)
            assert_memory_equal(back.tensors[i].shape, tensors[i].shape, tensors[i].n_dims * sizeof *matrix);
        assert_memory_equal(back.tensors[i].split, tensors[i].split, 2 * sizeof(int));
    }
    buf_done(&text);
    arena_done(&a);
}

static void what_is_cut_or_damaged_is_refused_or_read_within_its_bounds(void **state)
{
    (void)state;
    struct rand r;
    struct buf text;
    write(&side, &text);
    rand_seed(&r, 5);
    for (size_t len = 0; len < text.len; len++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct transfer_side back;
        char *part = xmalloc(len + 1); // of exactly that size, for the sanitizer
        memcpy(part, text.data, len);
        assert_int_equal(transfer_side_read(part, len, "actor", &a, &back, &err), ERR_PROTO);
        free(part);
        arena_done(&a);
    }
    for (int round = 0; round < 20000; round++) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct transfer_side back;
        char *damaged = xmalloc(text.len);
        memcpy(damaged, text.data, text.len);
        for (uint64_t i = rand_below(&r, 4) + 1; i-- > 0;)
            damaged[rand_below(&r, text.len)] = (char)rand_u64(&r);
        (void)transfer_side_read(damaged, text.len, "actor", &a, &back, &err);
        free(damaged);
        arena_done(&a);
    }
    buf_done(&text);
}

static void what_is_too_long_is_not_written(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct buf out = BUF_INIT(TRANSFER_SIDE_MAX);
    char *name = xcalloc(1, UINT16_MAX + 2);
    memset(name, 'a', UINT16_MAX + 1);
    const struct transfer_tensor long_ = {name, SAFETENSORS_F32, NULL, 0, (const int[]){-1, -1}};
    assert_int_equal(transfer_side_write(&(struct transfer_side){"actor", &mesh, &long_, 1, NULL}, &out, &err),
                     ERR_INVALID);
    err = ERR_INIT;
    const struct transfer_tensor deep = {"w", SAFETENSORS_F32, matrix, SHARD_DIMS_MAX + 1, (const int[]){-1, -1}};
    assert_int_equal(transfer_side_write(&(struct transfer_side){"actor", &mesh, &deep, 1, NULL}, &out, &err),
                     ERR_INVALID);
    assert_non_null(strstr(err.msg, "'w' of actor has 9 dimensions, at most 8"));
    free(name);
    buf_done(&out);
}

static void only_some_are_kept(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct transfer_side some = side;
    const char *missing;
    transfer_side_narrow(&some, (const char *const[]){"norm", "layers.0.up"}, 2, &a, &missing);
    assert_null(missing);
    assert_int_equal(some.n, 2);
    assert_string_equal(some.tensors[0].name, "layers.0.up");
    assert_string_equal(some.tensors[1].name, "norm");
    transfer_side_narrow(&some, (const char *const[]){"norm", "scale"}, 2, &a, &missing);
    assert_string_equal(missing, "scale");
    assert_int_equal(some.n, 1);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(what_is_cut_or_damaged_is_refused_or_read_within_its_bounds),
        cmocka_unit_test(what_is_too_long_is_not_written),
        cmocka_unit_test(only_some_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
