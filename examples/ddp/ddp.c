// SPDX-License-Identifier: Apache-2.0
// Data parallel training: every rank computes the gradients of its own rows, and all of them are averaged. The model is
// an MLP with one hidden layer. All ranks begin with the same weights, so all of them stay the same.
//
//   train_step(seed, rows)   one step on a batch that the seed makes; each rank takes its part; the loss
//   sample_grads(n)          the first n gradients of the last step
//   norm()                   of the weights
//
// init: {"dim": "dp"} averages over that dimension of the group's mesh only; without it over all ranks.
#include <cadre/collective.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 512, HIDDEN = 32, WEIGHTS = IN * HIDDEN + HIDDEN, SAMPLES_MAX = 16, DIM_SIZE = 64 };

struct model {
    float weights[WEIGHTS]; // of the hidden layer, row by row; then of the output
    float grads[WEIGHTS];
    char dim[DIM_SIZE]; // "" = all ranks
    cadre_comm *comm;   // NULL until the first step
};

// Numbers from -1 to 1, the same on every machine (an LCG, Knuth).
static float next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    const char *dim;
    uint64_t state = 1;
    (void)init, (void)init_len;
    cadre_result r = cadre_init_string(worker, "dim", "", &dim);
    if (r != CADRE_OK)
        return r;
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return CADRE_OUT_OF_MEMORY;
    snprintf(m->dim, sizeof m->dim, "%s", dim);
    for (int i = 0; i < WEIGHTS; i++)
        m->weights[i] = next(&state) / 16;
    *ret_self = m;
    return CADRE_OK;
}

static void destroy(void *self)
{
    struct model *m = self;
    cadre_comm_free(m->comm);
    free(m);
}

// Forward and backward of one row, whose target is the mean of its values. Adds to the gradients; the loss.
static float learn(struct model *m, const float *x)
{
    const float *out = m->weights + IN * HIDDEN;
    float hidden[HIDDEN], target = 0, error = 0;
    for (int i = 0; i < IN; i++)
        target += x[i] / IN;
    for (int h = 0; h < HIDDEN; h++) {
        float sum = 0;
        for (int i = 0; i < IN; i++)
            sum += m->weights[h * IN + i] * x[i];
        hidden[h] = tanhf(sum);
        error += out[h] * hidden[h];
    }
    error -= target;
    for (int h = 0; h < HIDDEN; h++) {
        float back = 2 * error * out[h] * (1 - hidden[h] * hidden[h]);
        m->grads[IN * HIDDEN + h] += 2 * error * hidden[h];
        for (int i = 0; i < IN; i++)
            m->grads[h * IN + i] += back * x[i];
    }
    return error * error;
}

// Of the batch that the seed makes, the rows of this member.
static float learn_rows(struct model *m, uint64_t seed, int64_t rows)
{
    int64_t n = rows / cadre_comm_size(m->comm), first = n * cadre_comm_rank(m->comm);
    float x[IN], loss = 0;
    memset(m->grads, 0, sizeof m->grads);
    for (int64_t row = first; row < first + n; row++) {
        uint64_t state = seed * 1000003 + (uint64_t)row;
        for (int i = 0; i < IN; i++)
            x[i] = next(&state);
        loss += learn(m, x) / (float)n;
    }
    for (int i = 0; i < WEIGHTS; i++)
        m->grads[i] /= (float)n;
    return loss;
}

// The first step makes it: all ranks get that call.
static cadre_result join(struct model *m, cadre_call *call)
{
    cadre_comm_options o;
    cadre_comm_options_init(&o);
    o.dim = m->dim[0] ? m->dim : NULL;
    return m->comm ? CADRE_OK : cadre_comm_new(call, &o, &m->comm);
}

static cadre_result train_step(void *self, cadre_call *call)
{
    struct model *m = self;
    int64_t seed, rows;
    cadre_result r = cadre_arg_int64(call, 0, "seed", &seed);
    if (r == CADRE_OK)
        r = cadre_arg_int64(call, 1, "rows", &rows);
    if (r == CADRE_OK)
        r = join(m, call);
    if (r != CADRE_OK)
        return r;
    if (rows < 1 || rows > 1 << 20 || rows % cadre_comm_size(m->comm))
        return cadre_fail(call, "the batch must have rows for %d ranks, the same number for each",
                          cadre_comm_size(m->comm));
    float loss = learn_rows(m, (uint64_t)seed, rows);
    r = cadre_all_reduce(m->comm, "F32", m->grads, m->grads, WEIGHTS, CADRE_MEAN);
    if (r == CADRE_OK)
        r = cadre_all_reduce(m->comm, "F32", &loss, &loss, 1, CADRE_MEAN);
    if (r != CADRE_OK)
        return cadre_fail(call, "%s", cadre_comm_error(m->comm));
    for (int i = 0; i < WEIGHTS; i++)
        m->weights[i] -= 0.05f * m->grads[i];
    return cadre_return_double(call, (double)loss);
}

static cadre_result sample_grads(void *self, cadre_call *call)
{
    const struct model *m = self;
    char out[SAMPLES_MAX * 32 + 8];
    int64_t n;
    size_t len = 0;
    cadre_result r = cadre_arg_int64(call, 0, "n", &n);
    if (r != CADRE_OK)
        return r;
    if (n < 1 || n > SAMPLES_MAX)
        return cadre_fail(call, "n is from 1 to %d", SAMPLES_MAX);
    for (int64_t i = 0; i < n; i++)
        len += (size_t)snprintf(out + len, sizeof out - len, "%s%.9g", i ? "," : "[", (double)m->grads[i]);
    len += (size_t)snprintf(out + len, sizeof out - len, "]");
    return cadre_return_json(call, out, len);
}

static cadre_result norm(void *self, cadre_call *call)
{
    const struct model *m = self;
    double sum = 0;
    for (int i = 0; i < WEIGHTS; i++)
        sum += (double)m->weights[i] * (double)m->weights[i];
    return cadre_return_double(call, sqrt(sum));
}

static const cadre_method methods[] = {
    {"train_step", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, train_step, "one step on a batch that the seed makes"},
    {"sample_grads", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, sample_grads, "the first gradients of the last step"},
    {"norm", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, norm, "of the weights"},
};
static const cadre_class classes[] = {{"Model", create, destroy, methods, sizeof methods / sizeof *methods}};
static const cadre_module_info module = {CADRE_ABI, "ddp", classes, 1};

const cadre_module_info *cadre_module(void)
{
    return &module;
}
