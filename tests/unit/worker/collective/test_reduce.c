// SPDX-License-Identifier: Apache-2.0
// How lists of numbers become one, of each type.
#include "worker/collective/reduce.h"

#include "common/base/mem.h"
#include "common/wire/safetensors.h"
#include "sdk/c/include/cadre/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

static void numbers_are_summed_and_compared(void **state)
{
    (void)state;
    const double a[] = {1, -2, 3.5}, b[] = {2, 5, -1};
    double out[3];
    reduce_find(SAFETENSORS_F64, CADRE_SUM)(out, a, b, 3);
    assert_true(out[0] == 3 && out[1] == 3 && out[2] == 2.5);
    reduce_find(SAFETENSORS_F64, CADRE_PRODUCT)(out, a, b, 3);
    assert_true(out[0] == 2 && out[1] == -10 && out[2] == -3.5);
    reduce_find(SAFETENSORS_F64, CADRE_MIN)(out, a, b, 3);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == -1);
    reduce_find(SAFETENSORS_F64, CADRE_MAX)(out, a, b, 3);
    assert_true(out[0] == 2 && out[1] == 5 && out[2] == 3.5);
}

static void integers_wrap_around_and_have_a_sign(void **state)
{
    (void)state;
    int8_t a = -100, b = -100, out;
    uint8_t c = 200, d = 100, small;
    int64_t large = INT64_MAX, one = 1, sum;
    reduce_find(SAFETENSORS_I8, CADRE_SUM)(&out, &a, &b, 1);
    assert_int_equal(out, 56);
    b = 1;
    reduce_find(SAFETENSORS_I8, CADRE_MAX)(&out, &a, &b, 1);
    assert_int_equal(out, 1);
    reduce_find(SAFETENSORS_U8, CADRE_MAX)(&small, &c, &d, 1);
    assert_int_equal(small, 200);
    reduce_find(SAFETENSORS_I64, CADRE_SUM)(&sum, &large, &one, 1);
    assert_true(sum == INT64_MIN);
}

static uint16_t sum16(int dtype, uint16_t a, uint16_t b)
{
    uint16_t out;
    reduce_find(dtype, CADRE_SUM)(&out, &a, &b, 1);
    return out;
}

static void short_floats_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(sum16(SAFETENSORS_BF16, 0x3f80, 0x4000), 0x4040); // 1 + 2
    assert_int_equal(sum16(SAFETENSORS_BF16, 0x4380, 0x3f80), 0x4380); // 256 + 1: a tie, to the even one
    assert_int_equal(sum16(SAFETENSORS_BF16, 0x4380, 0x4040), 0x4382); // 256 + 3: a tie, up
    assert_int_equal(sum16(SAFETENSORS_BF16, 0x7f7f, 0x7f7f), 0x7f80); // too large
    assert_true((sum16(SAFETENSORS_BF16, 0x7f80, 0xff80) & 0x7fff) > 0x7f80);
    assert_int_equal(sum16(SAFETENSORS_F16, 0x3c00, 0x4000), 0x4200); // 1 + 2
    assert_int_equal(sum16(SAFETENSORS_F16, 0x6800, 0x3c00), 0x6800); // 2048 + 1: a tie, to the even one
    assert_int_equal(sum16(SAFETENSORS_F16, 0x6800, 0x4200), 0x6802); // 2048 + 3: a tie, up
    assert_int_equal(sum16(SAFETENSORS_F16, 0x7bff, 0x7bff), 0x7c00); // too large
    assert_int_equal(sum16(SAFETENSORS_F16, 0x0001, 0x0001), 0x0002); // the smallest there are
    assert_int_equal(sum16(SAFETENSORS_F16, 0x03ff, 0x0001), 0x0400);
    assert_int_equal(sum16(SAFETENSORS_F16, 0xbc00, 0x3c00), 0x0000);
    assert_int_equal(sum16(SAFETENSORS_F16, 0x7c00, 0xfc00) & 0x7e00, 0x7e00);
}

// Every number there is comes back as itself, from the sum with -0.
static void short_floats_keep_their_value(void **state)
{
    (void)state;
    for (uint32_t v = 0; v <= 0xffff; v++) {
        bool odd_f16 = (v & 0x7fff) > 0x7c00, odd_bf16 = (v & 0x7fff) > 0x7f80;
        if (!odd_f16)
            assert_int_equal(sum16(SAFETENSORS_F16, (uint16_t)v, 0x8000), v);
        if (!odd_bf16)
            assert_int_equal(sum16(SAFETENSORS_BF16, (uint16_t)v, 0x8000), v);
    }
}

static void means_are_of_floating_point(void **state)
{
    (void)state;
    float single[] = {6, 1};
    uint16_t half = 0x4200; // 3
    assert_true(reduce_divides(SAFETENSORS_BF16));
    assert_false(reduce_divides(SAFETENSORS_I32));
    reduce_divide(SAFETENSORS_F32, single, 2, 4);
    assert_true(single[0] == 1.5f && single[1] == 0.25f);
    reduce_divide(SAFETENSORS_F16, &half, 1, 2);
    assert_int_equal(half, 0x3e00);
}

static void what_is_no_number_is_not_reduced(void **state)
{
    (void)state;
    assert_null(reduce_find(SAFETENSORS_BOOL, CADRE_SUM));
    assert_null(reduce_find(SAFETENSORS_F8_E4M3, CADRE_SUM));
    assert_null(reduce_find(SAFETENSORS_F32, CADRE_MEAN));
    assert_null(reduce_find(SAFETENSORS_F32, 0));
    assert_null(reduce_find(-1, CADRE_SUM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_summed_and_compared),
        cmocka_unit_test(integers_wrap_around_and_have_a_sign),
        cmocka_unit_test(short_floats_are_rounded_to_the_nearest),
        cmocka_unit_test(short_floats_keep_their_value),
        cmocka_unit_test(means_are_of_floating_point),
        cmocka_unit_test(what_is_no_number_is_not_reduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
