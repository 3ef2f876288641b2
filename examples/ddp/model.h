// SPDX-License-Identifier: Apache-2.0
// A model: weights that begin with the same numbers on every rank, and their gradients.
#pragma once

#include "device.h"

enum { MODEL_BUFFERS = 16 };

struct model {
    size_t row_len;  // floats in a row of the batch
    size_t rows_max; // that learn() takes at a time
    size_t n_weights;
    float rate; // of the descent
    float *x;   // on the device, as all that follows: the rows to learn
    float *weights;
    float *grads; // then the loss, so that one all_reduce averages both
    float *one;
    // Adds the gradients and the loss of `rows` rows in x. Each row counts as `share`.
    void (*learn)(struct model *m, size_t rows, float share);
    float *buffers[MODEL_BUFFERS]; // of the device, for model_free()
    size_t n_buffers;
};

// A row has `in` values. One hidden layer; the target is the mean of the values. NULL: there is no memory.
struct model *mlp_new(size_t in, size_t hidden);
// A row has `tokens` x `width` values. Multi-head attention of the tokens on each other; the target of each token is
// the mean of all tokens. `heads` divides `width`.
struct model *attention_new(size_t tokens, size_t width, size_t heads);
void model_free(struct model *m); // accepts NULL

// Numbers from -1 to 1, the same on every machine (an LCG, Knuth).
float random_next(uint64_t *state);

// ---- for the models -------------------------------------------------------------------------------------------------

float *model_floats(struct model *m, size_t n); // of the device
// When the sizes are set and all else has its memory: the rest. NULL: there is no memory, and the model is freed.
struct model *model_ready(struct model *m);

static inline struct matrix matrix(float *at, size_t row)
{
    return (struct matrix){at, row, 1, 0};
}

static inline struct matrix turned(struct matrix m)
{
    return (struct matrix){m.at, m.column, m.row, m.layer};
}

// A matrix of any size in which each element is 1.
static inline struct matrix ones(const struct model *m)
{
    return (struct matrix){m->one, 0, 0, 0};
}

// Adds the squares of n x width errors to the loss.
void model_add_loss(struct model *m, const float *error, size_t n, size_t width, float *squares, float share);
