// SPDX-License-Identifier: Apache-2.0
// A device, with floats in its memory, on which the models compute. host.c is the CPU, gpu_ddp.cu a GPU.
//
// Work is done in the order in which it was started. device_finish() reports errors.
#pragma once

#include <cadre/worker.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

// Element (i, j) of a layer is at[layer * m.layer + i * m.row + j * m.column].
struct matrix {
    float *at;
    size_t row, column, layer;
};

// In each layer: out = factor * a b, or out += factor * a b. `a` is m x k, `b` is k x n.
struct product {
    struct matrix out, a, b;
    size_t m, n, k, layers;
    float factor;
    bool add;
};

// Row i is at out[i * width], and at in[i * width].
struct rows {
    float *out;
    const float *in;
    size_t n, width;
    float factor;
};

extern const char device_backend[]; // of collectives, for this memory

cadre_result device_open(cadre_worker *worker); // in the constructor
float *device_alloc(size_t n);                  // NULL: there is no memory
void device_free(float *at);                    // accepts NULL
void device_clear(float *at, size_t n);
void device_write(float *to, const float *from, size_t n);
void device_read(float *to, const float *from, size_t n); // waits for what was started
cadre_result device_finish(cadre_call *call);             // waits, and writes the message for the client

void device_multiply(const struct product *p);
void device_tanh(const struct rows *r);      // of out
void device_tanh_back(const struct rows *r); // out *= 1 - in², where `in` is a tanh
void device_softmax(const struct rows *r);   // of out
// out: from the gradients of a softmax, which is `in`, to those before it
void device_softmax_back(const struct rows *r);
void device_squares(const struct rows *r); // out[i] = the sum of the squares of row i of `in`
void device_descend(const struct rows *r); // out -= factor * in

#ifdef __cplusplus
}
#endif
