// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/reduce.h"

#include "common/wire/safetensors.h"
#include "sdk/c/include/cadre/collective.h"

#include <string.h>

static float from_bf16(uint16_t v)
{
    uint32_t bits = (uint32_t)v << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// To the nearest, ties to even.
static uint16_t to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (f != f)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float from_f16(uint16_t v)
{
    uint32_t sign = (uint32_t)(v & 0x8000) << 16, exponent = v >> 10 & 0x1f, fraction = v & 0x3ff, bits;
    float f;
    if (!exponent) {
        f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    bits = sign | (exponent == 0x1f ? 0xffu : exponent + 112) << 23 | fraction << 13;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t to_f16(float f)
{
    uint32_t bits, sign;
    memcpy(&bits, &f, sizeof bits);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return (uint16_t)(sign | 0x7e00); // no number
    if (bits >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00); // too large, or infinite
    if (bits < 0x38800000) {              // the smallest steps are all of one size
        float magnitude;
        memcpy(&magnitude, &bits, sizeof magnitude);
        magnitude += 0.5f; // the bits of its last places are those steps, rounded
        memcpy(&bits, &magnitude, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    return (uint16_t)(sign | (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13);
}

// X(dtype, C type of the storage, C type of the sum, from storage, to storage)
#define SAME(v) (v)
#define TYPES(X)                                 \
    X(F64, double, double, SAME, SAME)           \
    X(F32, float, float, SAME, SAME)             \
    X(F16, uint16_t, float, from_f16, to_f16)    \
    X(BF16, uint16_t, float, from_bf16, to_bf16) \
    X(I64, uint64_t, uint64_t, SAME, SAME)       \
    X(I32, uint32_t, uint32_t, SAME, SAME)       \
    X(I16, uint16_t, uint32_t, SAME, (uint16_t)) \
    X(I8, uint8_t, uint32_t, SAME, (uint8_t))    \
    X(U64, uint64_t, uint64_t, SAME, SAME)       \
    X(U32, uint32_t, uint32_t, SAME, SAME)       \
    X(U16, uint16_t, uint32_t, SAME, (uint16_t)) \
    X(U8, uint8_t, uint32_t, SAME, (uint8_t))
// Sums of integers wrap around, so their sign does not matter; comparing does.
#define COMPARED(X)                     \
    X(F64, double, double, SAME)        \
    X(F32, float, float, SAME)          \
    X(F16, uint16_t, float, from_f16)   \
    X(BF16, uint16_t, float, from_bf16) \
    X(I64, int64_t, int64_t, SAME)      \
    X(I32, int32_t, int32_t, SAME)      \
    X(I16, int16_t, int16_t, SAME)      \
    X(I8, int8_t, int8_t, SAME)         \
    X(U64, uint64_t, uint64_t, SAME)    \
    X(U32, uint32_t, uint32_t, SAME)    \
    X(U16, uint16_t, uint16_t, SAME)    \
    X(U8, uint8_t, uint8_t, SAME)

// Each element depends on those at its own place only, also where out is a or b: so it may be done many at a time.
#ifdef __clang__
#define MANY_AT_A_TIME _Pragma("clang loop vectorize(assume_safety)")
#else
#define MANY_AT_A_TIME _Pragma("GCC ivdep")
#endif
#define LOOP(name, type, expression)                                    \
    static void name(void *out, const void *x, const void *y, size_t n) \
    {                                                                   \
        type *o = out;                                                  \
        const type *a = x, *b = y;                                      \
        MANY_AT_A_TIME                                                  \
        for (size_t i = 0; i < n; i++)                                  \
            o[i] = expression;                                          \
    }
#define X(name, type, wide, from, to)                               \
    LOOP(sum_##name, type, to((wide)from(a[i]) + (wide)from(b[i]))) \
    LOOP(product_##name, type, to((wide)from(a[i]) * (wide)from(b[i])))
TYPES(X)
#undef X
#define X(name, type, wide, from)                                             \
    LOOP(min_##name, type, (wide)from(b[i]) < (wide)from(a[i]) ? b[i] : a[i]) \
    LOOP(max_##name, type, (wide)from(b[i]) > (wide)from(a[i]) ? b[i] : a[i])
COMPARED(X)
#undef X

reduce_function reduce_find(int dtype, int reduction)
{
    static const reduce_function functions[SAFETENSORS_DTYPE_COUNT][CADRE_MAX + 1] = {
#define X(name, ...) [SAFETENSORS_##name] = {NULL, sum_##name, product_##name, min_##name, max_##name},
        TYPES(X)
#undef X
    };
    bool known = dtype >= 0 && dtype < SAFETENSORS_DTYPE_COUNT && reduction >= CADRE_SUM && reduction <= CADRE_MAX;
    return known ? functions[dtype][reduction] : NULL;
}

bool reduce_divides(int dtype)
{
    return dtype == SAFETENSORS_F64 || dtype == SAFETENSORS_F32 || dtype == SAFETENSORS_F16 ||
           dtype == SAFETENSORS_BF16;
}

void reduce_divide(int dtype, void *data, size_t n, int by)
{
    double *wide = data;
    float *single = data;
    uint16_t *half = data;
    for (size_t i = 0; i < n; i++) {
        if (dtype == SAFETENSORS_F64)
            wide[i] /= by;
        else if (dtype == SAFETENSORS_F32)
            single[i] /= (float)by;
        else if (dtype == SAFETENSORS_F16)
            half[i] = to_f16(from_f16(half[i]) / (float)by);
        else if (dtype == SAFETENSORS_BF16)
            half[i] = to_bf16(from_bf16(half[i]) / (float)by);
    }
}
