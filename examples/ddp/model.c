// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <stdlib.h>

float random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

float *model_floats(struct model *m, size_t n)
{
    return m->buffers[m->n_buffers++] = device_alloc(n);
}

static bool has_all(const struct model *m)
{
    for (size_t i = 0; i < m->n_buffers; i++)
        if (!m->buffers[i])
            return false;
    return true;
}

struct model *model_ready(struct model *m)
{
    const float one = 1;
    uint64_t state = 1;
    float *weights = malloc(m->n_weights * sizeof *weights);
    m->x = model_floats(m, m->rows_max * m->row_len);
    m->weights = model_floats(m, m->n_weights);
    m->grads = model_floats(m, m->n_weights + 1);
    m->one = model_floats(m, 1);
    if (!weights || !has_all(m)) {
        free(weights);
        model_free(m);
        return NULL;
    }
    for (size_t i = 0; i < m->n_weights; i++)
        weights[i] = random_next(&state) / 16;
    device_write(m->weights, weights, m->n_weights);
    device_write(m->one, &one, 1);
    device_clear(m->grads, m->n_weights + 1); // what sample_grads() returns before the first step
    free(weights);
    return m;
}

void model_free(struct model *m)
{
    for (size_t i = 0; m && i < m->n_buffers; i++)
        device_free(m->buffers[i]);
    free(m);
}

void model_add_loss(struct model *m, const float *error, size_t n, size_t width, float *squares, float share)
{
    device_squares(&(struct rows){.out = squares, .in = error, .n = n, .width = width});
    device_multiply(&(struct product){.out = matrix(m->grads + m->n_weights, 1),
                                      .a = ones(m),
                                      .b = matrix(squares, 1),
                                      .m = 1,
                                      .n = 1,
                                      .k = n,
                                      .layers = 1,
                                      .factor = share,
                                      .add = true});
}
