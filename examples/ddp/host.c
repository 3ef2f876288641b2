// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: the threads of kernels.h, one after the other.
#include "kernels.h"

#include <stdlib.h>

const char device_backend[] = "gloo";

cadre_result device_open(cadre_worker *worker)
{
    (void)worker;
    return CADRE_OK;
}

float *device_alloc(size_t n)
{
    return malloc(n * sizeof(float));
}

void device_free(float *at)
{
    free(at);
}

void device_clear(float *at, size_t n)
{
    memset(at, 0, n * sizeof *at);
}

void device_write(float *to, const float *from, size_t n)
{
    memcpy(to, from, n * sizeof *to);
}

void device_read(float *to, const float *from, size_t n)
{
    memcpy(to, from, n * sizeof *to);
}

cadre_result device_finish(cadre_call *call)
{
    (void)call;
    return CADRE_OK;
}

static void multiply_block(const struct product *p, struct place at)
{
    struct strips strips;
    float sums[THREADS][SIDE][SIDE] = {0};
    for (size_t first = 0; first < p->k; first += DEPTH) {
        for (unsigned thread = 0; thread < THREADS; thread++)
            product_load(p, at, first, thread, &strips);
        for (unsigned thread = 0; thread < THREADS; thread++)
            product_add(&strips, thread, sums[thread]);
    }
    for (unsigned thread = 0; thread < THREADS; thread++)
        product_store(p, at, thread, sums[thread]);
}

void device_multiply(const struct product *p)
{
    struct place at;
    for (at.layer = 0; at.layer < p->layers; at.layer++)
        for (at.row = 0; at.row < p->m; at.row += TILE)
            for (at.column = 0; at.column < p->n; at.column += TILE)
                multiply_block(p, at);
}

#define ROWS(name)                           \
    void device_##name(const struct rows *r) \
    {                                        \
        for (size_t i = 0; i < r->n; i++)    \
            name##_row(r, i);                \
    }
ROWS(tanh)
ROWS(tanh_back)
ROWS(softmax)
ROWS(softmax_back)
ROWS(squares)
ROWS(descend)
