// SPDX-License-Identifier: Apache-2.0
// Data parallel training: every rank computes the gradients of its own rows, and all of them are averaged. All ranks
// begin with the same weights, so all of them stay the same. Two classes, each with a model of its own:
//
//   Attention    on batches (rows, 128, 1024)
//   MLP          on batches (rows, 512)
//
//   train_step(seed, rows)   one step on a batch that the seed makes; each rank takes its part; the loss
//   sample_grads(n)          n gradients of the last step, from the first to the last, evenly
//   norm()                   of the weights
//
// init: {"dim": "dp"} averages over that dimension of the group's mesh only; without it over all ranks.
//
// The module ddp computes on CPUs (host.c), the module gpu_ddp on GPUs (gpu_ddp.cu).
#include "model.h"

#include <cadre/collective.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 128, WIDTH = 1024, HEADS = 8, IN = 512, HIDDEN = 32, SAMPLES_MAX = 16, DIM_SIZE = 64 };

struct trainer {
    struct model *model;
    float *rows;        // of a batch, for model->x
    char dim[DIM_SIZE]; // "" = all ranks
    cadre_comm *comm;   // NULL until the first step
};

static void destroy(void *self)
{
    struct trainer *t = self;
    cadre_comm_free(t->comm);
    model_free(t->model);
    free(t->rows);
    free(t);
}

static cadre_result create(cadre_worker *worker, struct model *(*new_model)(void), void **ret_self)
{
    const char *dim;
    cadre_result r = cadre_init_string(worker, "dim", "", &dim);
    if (r == CADRE_OK)
        r = device_open(worker);
    if (r != CADRE_OK)
        return r;
    struct trainer *t = calloc(1, sizeof *t);
    if (!t)
        return CADRE_OUT_OF_MEMORY;
    snprintf(t->dim, sizeof t->dim, "%s", dim);
    t->model = new_model();
    t->rows = t->model ? malloc(t->model->rows_max * t->model->row_len * sizeof *t->rows) : NULL;
    if (!t->rows) {
        destroy(t);
        return CADRE_OUT_OF_MEMORY;
    }
    *ret_self = t;
    return CADRE_OK;
}

static struct model *new_attention(void)
{
    return attention_new(TOKENS, WIDTH, HEADS);
}

static struct model *new_mlp(void)
{
    return mlp_new(IN, HIDDEN);
}

static cadre_result create_attention(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    return create(worker, new_attention, ret_self);
}

static cadre_result create_mlp(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    return create(worker, new_mlp, ret_self);
}

// The rows of this member in the batch that the seed makes.
static void learn(struct trainer *t, uint64_t seed, size_t rows)
{
    struct model *m = t->model;
    const size_t mine = rows / (size_t)cadre_comm_size(t->comm), begin = mine * (size_t)cadre_comm_rank(t->comm);
    device_clear(m->grads, m->n_weights + 1);
    for (size_t first = begin, n; first < begin + mine; first += n) {
        n = begin + mine - first < m->rows_max ? begin + mine - first : m->rows_max;
        for (size_t i = 0; i < n; i++) {
            uint64_t state = seed * 1000003 + first + i;
            for (size_t j = 0; j < m->row_len; j++)
                t->rows[i * m->row_len + j] = random_next(&state);
        }
        device_write(m->x, t->rows, n * m->row_len);
        m->learn(m, n, 1 / (float)mine);
    }
}

// The first step makes it: all ranks get that call.
static cadre_result join(struct trainer *t, cadre_call *call)
{
    cadre_comm_options o;
    cadre_comm_options_init(&o);
    o.dim = t->dim[0] ? t->dim : NULL;
    o.backend = device_backend;
    return t->comm ? CADRE_OK : cadre_comm_new(call, &o, &t->comm);
}

static cadre_result train_step(void *self, cadre_call *call)
{
    struct trainer *t = self;
    struct model *m = t->model;
    int64_t seed, rows;
    float loss = 0;
    cadre_result r = cadre_arg_int64(call, 0, "seed", &seed);
    if (r == CADRE_OK)
        r = cadre_arg_int64(call, 1, "rows", &rows);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "seed", "rows", NULL);
    if (r == CADRE_OK)
        r = join(t, call);
    if (r != CADRE_OK)
        return r;
    if (rows < 1 || rows > 1 << 20 || rows % cadre_comm_size(t->comm))
        return cadre_fail(call, "the batch must have rows for %d ranks, the same number for each",
                          cadre_comm_size(t->comm));
    learn(t, (uint64_t)seed, (size_t)rows);
    r = device_finish(call);
    if (r != CADRE_OK)
        return r;
    if (cadre_all_reduce(t->comm, "F32", m->grads, m->grads, m->n_weights + 1, CADRE_MEAN) != CADRE_OK)
        return cadre_fail(call, "%s", cadre_comm_error(t->comm));
    device_descend(&(struct rows){.out = m->weights, .in = m->grads, .n = m->n_weights, .width = 1, .factor = m->rate});
    device_read(&loss, m->grads + m->n_weights, 1);
    r = device_finish(call);
    return r == CADRE_OK ? cadre_return_double(call, (double)loss) : r;
}

static cadre_result sample_grads(void *self, cadre_call *call)
{
    const struct model *m = ((const struct trainer *)self)->model;
    char out[SAMPLES_MAX * 32 + 8];
    int64_t n;
    size_t len = 0;
    cadre_result r = cadre_arg_int64(call, 0, "n", &n);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "n", NULL);
    if (r != CADRE_OK)
        return r;
    if (n < 1 || n > SAMPLES_MAX)
        return cadre_fail(call, "n is from 1 to %d", SAMPLES_MAX);
    for (size_t i = 0; i < (size_t)n; i++) {
        float grad = 0;
        device_read(&grad, m->grads + (n > 1 ? i * (m->n_weights - 1) / (size_t)(n - 1) : 0), 1);
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%.9g", i ? "," : "[", (double)grad);
    }
    len += (size_t)snprintf(out + len, sizeof out - len, "]");
    r = device_finish(call);
    return r == CADRE_OK ? cadre_return_json(call, out, len) : r;
}

static cadre_result norm(void *self, cadre_call *call)
{
    const struct model *m = ((const struct trainer *)self)->model;
    cadre_result r = cadre_args_only(call, NULL);
    if (r != CADRE_OK)
        return r;
    float *weights = malloc(m->n_weights * sizeof *weights);
    if (!weights)
        return CADRE_OUT_OF_MEMORY;
    double sum = 0;
    device_read(weights, m->weights, m->n_weights);
    r = device_finish(call);
    for (size_t i = 0; r == CADRE_OK && i < m->n_weights; i++)
        sum += (double)weights[i] * (double)weights[i];
    free(weights);
    return r == CADRE_OK ? cadre_return_double(call, sqrt(sum)) : r;
}

static const cadre_method methods[] = {
    {"train_step", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, train_step, "one step on a batch that the seed makes"},
    {"sample_grads", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, sample_grads, "gradients of the last step"},
    {"norm", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, norm, "of the weights"},
};
static const cadre_class classes[] = {
    {"Attention", create_attention, destroy, methods, sizeof methods / sizeof *methods},
    {"MLP", create_mlp, destroy, methods, sizeof methods / sizeof *methods},
};
static const cadre_module_info module = {CADRE_ABI, "ddp", classes, sizeof classes / sizeof *classes};

const cadre_module_info *cadre_module(void)
{
    return &module;
}
