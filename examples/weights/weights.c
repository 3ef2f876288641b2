// SPDX-License-Identifier: Apache-2.0
// Weights that move from one group to another. A Trainer has rows of a matrix, a Server has columns of it, and all
// ranks have the same vector. How many ranks each of both groups has does not matter.
//
//   a Trainer   step(x) adds x to all values
//   a Server    total() is the sum of its values; version() says which transfer they are of
//
// transfer.c is a client that moves them: from the trainers to the servers, again and again.
#include <cadre/transfer.h>
#include <stdlib.h>

enum { ROWS = 256, COLUMNS = 1024, VECTOR = 10 };

struct model {
    cadre_weights *weights;
    uint32_t rank, world;
    int dim; // of the matrix, that is split
    float *matrix;
    uint64_t rows, columns; // of this rank
    float vector[VECTOR];
};

static uint64_t part_of(uint64_t n, const struct model *m)
{
    uint64_t each = (n + m->world - 1) / m->world, first = m->rank * each;
    return first >= n ? 0 : first + each > n ? n - first : each;
}

static cadre_result create(cadre_worker *worker, int dim, void **ret_self)
{
    struct model *m = calloc(1, sizeof *m);
    if (!m)
        return CADRE_OUT_OF_MEMORY;
    m->rank = (uint32_t)cadre_rank(worker);
    m->world = (uint32_t)cadre_world_size(worker);
    m->dim = dim;
    m->rows = dim == 0 ? part_of(ROWS, m) : ROWS;
    m->columns = dim == 1 ? part_of(COLUMNS, m) : COLUMNS;
    m->matrix = calloc(m->rows * m->columns + 1, sizeof *m->matrix);
    m->weights = cadre_weights_new();
    *ret_self = m;
    return m->matrix ? CADRE_OK : CADRE_OUT_OF_MEMORY;
}

static cadre_result create_trainer(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    return create(worker, 0, ret_self);
}

static cadre_result create_server(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    return create(worker, 1, ret_self);
}

static void destroy(void *self)
{
    struct model *m = self;
    cadre_weights_free(m->weights);
    free(m->matrix);
    free(m);
}

// cadre_weights_move() reads the arguments: the client that moves the weights makes them, and not the program.
static cadre_result move(void *self, cadre_call *call)
{
    struct model *m = self;
    const uint64_t matrix[] = {ROWS, COLUMNS}, vector[] = {VECTOR};
    const cadre_weight weights[] = {
        {"matrix", "F32", 2, matrix, &m->dim, m->matrix, m->rows * m->columns * sizeof *m->matrix, 0},
        {"vector", "F32", 1, vector, NULL, m->vector, sizeof m->vector, 0},
    };
    cadre_weight_list list;
    cadre_weight_list_init(&list);
    list.mesh = &m->world;
    list.n_mesh = 1;
    list.weights = weights;
    list.n = 2;
    return cadre_weights_move(m->weights, call, &list);
}

static cadre_result step(void *self, cadre_call *call)
{
    struct model *m = self;
    double x;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", NULL);
    if (r != CADRE_OK)
        return r;
    for (uint64_t i = 0; i < m->rows * m->columns; i++)
        m->matrix[i] += (float)x;
    for (int i = 0; i < VECTOR; i++)
        m->vector[i] += (float)x;
    return CADRE_OK;
}

static cadre_result total(void *self, cadre_call *call)
{
    const struct model *m = self;
    cadre_result r = cadre_args_only(call, NULL);
    double sum = 0;
    for (uint64_t i = 0; i < m->rows * m->columns; i++)
        sum += m->matrix[i];
    for (int i = 0; i < VECTOR; i++)
        sum += m->vector[i];
    return r == CADRE_OK ? cadre_return_double(call, sum) : r;
}

static cadre_result version(void *self, cadre_call *call)
{
    const struct model *m = self;
    cadre_result r = cadre_args_only(call, NULL);
    return r == CADRE_OK ? cadre_return_string(call, cadre_weights_version(m->weights)) : r;
}

#define MOVE                                                                                                \
    {                                                                                                       \
        CADRE_WEIGHTS_METHOD, CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, move, "weights to or from another group" \
    }

static const cadre_method trainer[] = {
    MOVE,
    {"step", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, step, "adds x to all values"},
};
static const cadre_method server[] = {
    MOVE,
    {"total", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, total, "the sum of the values of each rank"},
    {"version", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, version, "which transfer they are of"},
};
static const cadre_class classes[] = {
    {"Trainer", create_trainer, destroy, trainer, 2},
    {"Server", create_server, destroy, server, 3},
};
static const cadre_module_info module = {CADRE_ABI, "weights", classes, 2};

const cadre_module_info *cadre_module(void)
{
    return &module;
}
