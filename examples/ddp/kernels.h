// SPDX-License-Identifier: Apache-2.0
// The work of one thread of a device, in C and in CUDA: gpu_ddp.cu runs these functions in the threads of a GPU, host.c
// one after the other. Both compute the same addresses, so a sanitizer that watches the host finds errors of the
// GPU.
#pragma once

#include "device.h"

#include <math.h>

#ifdef __CUDACC__
#define THREAD static __device__ inline
#else
#define THREAD static inline
#endif

// ---- a product of matrices: a block of threads computes a tile of it, each thread SIDE x SIDE elements --------------

enum { TILE = 64, SIDE = 4, DEPTH = 16, ACROSS = TILE / SIDE, THREADS = ACROSS * ACROSS };

// Memory that the threads of a block share: the strips of both matrices that they need for the next DEPTH terms of the
// sums.
struct strips {
    float a[DEPTH][TILE], b[DEPTH][TILE];
};

// Which tile: its first row and column, and the layer.
struct place {
    size_t row, column, layer;
};

THREAD float *element(const struct matrix *m, size_t layer, size_t i, size_t j)
{
    return m->at + layer * m->layer + i * m->row + j * m->column;
}

// All threads together fill the strips, from term `first` of the sums on. Elements outside of a matrix count as 0.
THREAD void product_load(const struct product *p, struct place at, size_t first, unsigned thread, struct strips *strips)
{
    for (unsigned n = thread; n < DEPTH * TILE; n += THREADS) {
        unsigned term = n / TILE, i = n % TILE;
        size_t row = at.row + i, column = at.column + i, k = first + term;
        strips->a[term][i] = row < p->m && k < p->k ? *element(&p->a, at.layer, row, k) : 0;
        strips->b[term][i] = column < p->n && k < p->k ? *element(&p->b, at.layer, k, column) : 0;
    }
}

// When the strips are full: the terms of this thread's elements.
THREAD void product_add(const struct strips *strips, unsigned thread, float sums[SIDE][SIDE])
{
    unsigned row = thread / ACROSS * SIDE, column = thread % ACROSS * SIDE;
    for (unsigned term = 0; term < DEPTH; term++)
        for (unsigned i = 0; i < SIDE; i++) {
            const float a = strips->a[term][row + i], *b = &strips->b[term][column];
            for (unsigned j = 0; j < SIDE; j++)
                sums[i][j] += a * b[j];
        }
}

THREAD void product_store(const struct product *p, struct place at, unsigned thread, float sums[SIDE][SIDE])
{
    size_t row = at.row + thread / ACROSS * SIDE, column = at.column + thread % ACROSS * SIDE;
    for (size_t i = row; i < row + SIDE && i < p->m; i++)
        for (size_t j = column; j < column + SIDE && j < p->n; j++) {
            float *out = element(&p->out, at.layer, i, j);
            *out = (p->add ? *out : 0) + p->factor * sums[i - row][j - column];
        }
}

// ---- work on rows: one thread each ----------------------------------------------------------------------------------

THREAD void tanh_row(const struct rows *r, size_t i)
{
    float *out = r->out + i * r->width;
    for (size_t j = 0; j < r->width; j++)
        out[j] = tanhf(out[j]);
}

THREAD void tanh_back_row(const struct rows *r, size_t i)
{
    const float *in = r->in + i * r->width;
    float *out = r->out + i * r->width;
    for (size_t j = 0; j < r->width; j++)
        out[j] *= 1 - in[j] * in[j];
}

THREAD void softmax_row(const struct rows *r, size_t i)
{
    float *out = r->out + i * r->width, most = out[0], sum = 0;
    for (size_t j = 1; j < r->width; j++)
        most = fmaxf(most, out[j]);
    for (size_t j = 0; j < r->width; j++) {
        out[j] = expf(out[j] - most);
        sum += out[j];
    }
    for (size_t j = 0; j < r->width; j++)
        out[j] /= sum;
}

THREAD void softmax_back_row(const struct rows *r, size_t i)
{
    const float *in = r->in + i * r->width;
    float *out = r->out + i * r->width, sum = 0;
    for (size_t j = 0; j < r->width; j++)
        sum += in[j] * out[j];
    for (size_t j = 0; j < r->width; j++)
        out[j] = in[j] * (out[j] - sum);
}

THREAD void squares_row(const struct rows *r, size_t i)
{
    const float *in = r->in + i * r->width;
    float sum = 0;
    for (size_t j = 0; j < r->width; j++)
        sum += in[j] * in[j];
    r->out[i] = sum;
}

THREAD void descend_row(const struct rows *r, size_t i)
{
    const float *in = r->in + i * r->width;
    float *out = r->out + i * r->width;
    for (size_t j = 0; j < r->width; j++)
        out[j] -= r->factor * in[j];
}
