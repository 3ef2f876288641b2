// SPDX-License-Identifier: Apache-2.0
// Reduces two lists of numbers to one. The types are the same as in safetensors. Other types than
// numbers have no function.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// out[i] = a[i] and b[i] reduced; out may be a or b.
typedef void (*reduce_function)(void *out, const void *a, const void *b, size_t n);

reduce_function reduce_find(int dtype, int reduction); // NULL = there is none; not for CADRE_MEAN
bool reduce_divides(int dtype);                        // it is a floating point type
void reduce_divide(int dtype, void *data, size_t n, int by);

#ifdef __cplusplus
}
#endif
