// SPDX-License-Identifier: Apache-2.0
// For each row of the batch, x, whose tokens are the rows of a matrix:
//
//   [q k v] = x in                              all heads side by side
//   scores  = softmax(q k' / sqrt(width / heads))    in each head, as the next line
//   mixed   = scores v
//   error   = mixed out - the mean of the tokens
#include "model.h"

#include <math.h>
#include <stdlib.h>

struct attention {
    struct model model; // the first member
    size_t tokens, width, heads;
    float *qkv, *scores, *mixed, *error, *squares;
    float *back_qkv, *back_scores, *back_mixed; // the gradients of these
};

// A layer for each head, which has its part of the columns.
static struct matrix by_head(const struct attention *p, float *at, size_t row)
{
    return (struct matrix){at, row, 1, p->width / p->heads};
}

static struct matrix scores_by_head(const struct attention *p, float *at)
{
    return (struct matrix){at, p->tokens, 1, p->tokens * p->tokens};
}

struct heads {
    struct matrix q, k, v;
};

static struct heads heads(const struct attention *p, float *qkv)
{
    const size_t row = 3 * p->width;
    return (struct heads){by_head(p, qkv, row), by_head(p, qkv + p->width, row), by_head(p, qkv + 2 * p->width, row)};
}

static void forward(const struct attention *p, struct matrix x, struct matrix in, struct matrix out)
{
    const size_t t = p->tokens, w = p->width, each = w / p->heads;
    const struct heads h = heads(p, p->qkv);
    const struct matrix scores = scores_by_head(p, p->scores), mixed = by_head(p, p->mixed, w);
    const struct matrix error = matrix(p->error, w);
    device_multiply(&(struct product){matrix(p->qkv, 3 * w), x, in, t, 3 * w, w, 1, 1, false});
    device_multiply(&(struct product){scores, h.q, turned(h.k), t, t, each, p->heads, 1 / sqrtf((float)each), false});
    device_softmax(&(struct rows){.out = p->scores, .n = p->heads * t, .width = t});
    device_multiply(&(struct product){mixed, scores, h.v, t, each, t, p->heads, 1, false});
    device_multiply(&(struct product){error, mixed, out, t, w, w, 1, 1, false});
    device_multiply(&(struct product){error, ones(&p->model), x, t, w, t, 1, -1 / (float)t, true});
}

static void backward(const struct attention *p, struct matrix x, struct matrix grad_in, struct matrix out,
                     struct matrix grad_out, float factor)
{
    const size_t t = p->tokens, w = p->width, each = w / p->heads;
    const float scale = 1 / sqrtf((float)each);
    const struct heads h = heads(p, p->qkv), back = heads(p, p->back_qkv);
    const struct matrix scores = scores_by_head(p, p->scores), back_scores = scores_by_head(p, p->back_scores);
    const struct matrix back_mixed = by_head(p, p->back_mixed, w);
    const struct matrix error = matrix(p->error, w);
    device_multiply(&(struct product){grad_out, turned(matrix(p->mixed, w)), error, w, w, t, 1, factor, true});
    device_multiply(&(struct product){back_mixed, error, turned(out), t, w, w, 1, factor, false});
    device_multiply(&(struct product){back.v, turned(scores), back_mixed, t, each, t, p->heads, 1, false});
    device_multiply(&(struct product){back_scores, back_mixed, turned(h.v), t, t, each, p->heads, 1, false});
    device_softmax_back(&(struct rows){.out = p->back_scores, .in = p->scores, .n = p->heads * t, .width = t});
    device_multiply(&(struct product){back.q, back_scores, h.k, t, each, t, p->heads, scale, false});
    device_multiply(&(struct product){back.k, turned(back_scores), h.q, t, each, t, p->heads, scale, false});
    device_multiply(&(struct product){grad_in, turned(x), matrix(p->back_qkv, 3 * w), w, 3 * w, t, 1, 1, true});
}

static void learn(struct model *m, size_t rows, float share)
{
    const struct attention *p = (const struct attention *)m;
    const size_t w = p->width, second = 3 * w * w;
    const float each = share / (float)p->tokens;
    const struct matrix in = matrix(m->weights, 3 * w), out = matrix(m->weights + second, w);
    for (size_t i = 0; i < rows; i++) {
        const struct matrix x = matrix(m->x + i * m->row_len, w);
        forward(p, x, in, out);
        model_add_loss(m, p->error, p->tokens, w, p->squares, each);
        backward(p, x, matrix(m->grads, 3 * w), out, matrix(m->grads + second, w), 2 * each);
    }
}

struct model *attention_new(size_t tokens, size_t width, size_t heads)
{
    struct attention *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->model = (struct model){
        .row_len = tokens * width, .rows_max = 1, .n_weights = 4 * width * width, .rate = 0.05f, .learn = learn};
    p->tokens = tokens;
    p->width = width;
    p->heads = heads;
    p->qkv = model_floats(&p->model, tokens * 3 * width);
    p->scores = model_floats(&p->model, heads * tokens * tokens);
    p->mixed = model_floats(&p->model, tokens * width);
    p->error = model_floats(&p->model, tokens * width);
    p->squares = model_floats(&p->model, tokens);
    p->back_qkv = model_floats(&p->model, tokens * 3 * width);
    p->back_scores = model_floats(&p->model, heads * tokens * tokens);
    p->back_mixed = model_floats(&p->model, tokens * width);
    return model_ready(&p->model);
}
