// SPDX-License-Identifier: Apache-2.0
// hidden = tanh(x in); error = hidden out - the mean of x
#include "model.h"

#include <stdlib.h>

enum { ROWS_MAX = 64 };

struct mlp {
    struct model model; // the first member
    size_t in, hidden;
    float *values, *error, *squares, *back; // values and back: of the hidden layer
};

static void forward(const struct mlp *p, size_t rows, struct matrix in, struct matrix out)
{
    const struct matrix x = matrix(p->model.x, p->in), values = matrix(p->values, p->hidden);
    const struct matrix error = matrix(p->error, 1);
    device_multiply(&(struct product){values, x, in, rows, p->hidden, p->in, 1, 1, false});
    device_tanh(&(struct rows){.out = p->values, .n = rows * p->hidden, .width = 1});
    device_multiply(&(struct product){error, values, out, rows, 1, p->hidden, 1, 1, false});
    device_multiply(&(struct product){error, x, ones(&p->model), rows, 1, p->in, 1, -1 / (float)p->in, true});
}

static void backward(const struct mlp *p, size_t rows, struct matrix grad_in, struct matrix out, struct matrix grad_out,
                     float factor)
{
    const struct matrix x = matrix(p->model.x, p->in), values = matrix(p->values, p->hidden);
    const struct matrix error = matrix(p->error, 1), back = matrix(p->back, p->hidden);
    device_multiply(&(struct product){grad_out, turned(values), error, p->hidden, 1, rows, 1, factor, true});
    device_multiply(&(struct product){back, error, turned(out), rows, p->hidden, 1, 1, factor, false});
    device_tanh_back(&(struct rows){.out = p->back, .in = p->values, .n = rows * p->hidden, .width = 1});
    device_multiply(&(struct product){grad_in, turned(x), back, p->in, p->hidden, rows, 1, 1, true});
}

static void learn(struct model *m, size_t rows, float share)
{
    const struct mlp *p = (const struct mlp *)m;
    const size_t second = p->in * p->hidden;
    const struct matrix in = matrix(m->weights, p->hidden), out = matrix(m->weights + second, 1);
    forward(p, rows, in, out);
    model_add_loss(m, p->error, rows, 1, p->squares, share);
    backward(p, rows, matrix(m->grads, p->hidden), out, matrix(m->grads + second, 1), 2 * share);
}

struct model *mlp_new(size_t in, size_t hidden)
{
    struct mlp *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->model = (struct model){
        .row_len = in, .rows_max = ROWS_MAX, .n_weights = in * hidden + hidden, .rate = 0.05f, .learn = learn};
    p->in = in;
    p->hidden = hidden;
    p->values = model_floats(&p->model, ROWS_MAX * hidden);
    p->error = model_floats(&p->model, ROWS_MAX);
    p->squares = model_floats(&p->model, ROWS_MAX);
    p->back = model_floats(&p->model, ROWS_MAX * hidden);
    return model_ready(&p->model);
}
