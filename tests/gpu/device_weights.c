// SPDX-License-Identifier: Apache-2.0
// Weights in memory of the GPU that move from one group to another: a Trainer has rows of a matrix, a Server has
// columns of it. Calls the driver itself, so the stand-in for it does, too (tests/unit/worker/device/cuda_stand_in.c).
//
//   a Trainer   step(x) adds x to all values
//   a Server    total() is the sum of its values
#include <cadre/transfer.h>

#include <dlfcn.h>
#include <stdlib.h>

enum { ROWS = 256, COLUMNS = 1024 };

struct model {
    cadre_weights *weights;
    uint32_t world;
    int dim;         // of the matrix, that is split
    uint64_t memory; // on the device
    size_t n;        // values
    float *values;   // room for them on the host
};

static int (*init)(unsigned flags);
static int (*device)(int *ret, int ordinal);
static int (*retain)(void **ret, int device);
static int (*choose)(void *context);
static int (*alloc)(uint64_t *ret, size_t size);
static int (*upload)(uint64_t to, const void *from, size_t len);
static int (*download)(void *to, uint64_t from, size_t len);

static cadre_result load(cadre_worker *worker)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"cuInit", &init},
                   {"cuDeviceGet", &device},
                   {"cuDevicePrimaryCtxRetain", &retain},
                   {"cuCtxSetCurrent", &choose},
                   {"cuMemAlloc_v2", &alloc},
                   {"cuMemcpyHtoD_v2", &upload},
                   {"cuMemcpyDtoH_v2", &download}};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *p = driver ? dlsym(driver, symbols[i].name) : NULL;
        if (!p)
            return cadre_create_fail(worker, "there is no CUDA driver here that has %s", symbols[i].name);
        memcpy(symbols[i].to, &p, sizeof p);
    }
    return CADRE_OK;
}

// The constructor's thread runs all methods.
static cadre_result create(cadre_worker *worker, int dim, void **ret_self)
{
    struct model *m = calloc(1, sizeof *m);
    void *context;
    int gpu;
    if (!m)
        return CADRE_OUT_OF_MEMORY;
    *ret_self = m;
    cadre_result r = load(worker);
    if (r != CADRE_OK)
        return r;
    m->world = (uint32_t)cadre_world_size(worker);
    m->dim = dim;
    m->n = ROWS * COLUMNS / m->world;
    m->values = calloc(m->n, sizeof *m->values);
    m->weights = cadre_weights_new();
    int code = init(0);
    if (code == 0)
        code = device(&gpu, cadre_device(worker));
    if (code == 0)
        code = retain(&context, gpu);
    if (code == 0)
        code = choose(context);
    if (code == 0)
        code = alloc(&m->memory, m->n * sizeof *m->values);
    if (code == 0)
        code = upload(m->memory, m->values, m->n * sizeof *m->values);
    return code == 0 ? CADRE_OK : cadre_create_fail(worker, "GPU %d: error %d", cadre_device(worker), code);
}

static cadre_result create_trainer(cadre_worker *worker, const char *text, size_t len, void **ret_self)
{
    (void)text, (void)len;
    return create(worker, 0, ret_self);
}

static cadre_result create_server(cadre_worker *worker, const char *text, size_t len, void **ret_self)
{
    (void)text, (void)len;
    return create(worker, 1, ret_self);
}

static void destroy(void *self)
{
    struct model *m = self;
    cadre_weights_free(m->weights);
    free(m->values);
    free(m); // the memory of the GPU goes with the process
}

static cadre_result move(void *self, cadre_call *call)
{
    struct model *m = self;
    const uint64_t shape[] = {ROWS, COLUMNS};
    const cadre_weight weights[] = {
        {"matrix", "F32", 2, shape, &m->dim, (void *)(uintptr_t)m->memory, m->n * sizeof *m->values, 1},
    };
    cadre_weight_list list;
    cadre_weight_list_init(&list);
    list.mesh = &m->world;
    list.n_mesh = 1;
    list.weights = weights;
    list.n = 1;
    return cadre_weights_move(m->weights, call, &list);
}

static cadre_result step(void *self, cadre_call *call)
{
    struct model *m = self;
    double x;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r != CADRE_OK)
        return r;
    int code = download(m->values, m->memory, m->n * sizeof *m->values);
    for (size_t i = 0; i < m->n; i++)
        m->values[i] += (float)x;
    if (code == 0)
        code = upload(m->memory, m->values, m->n * sizeof *m->values);
    return code == 0 ? CADRE_OK : cadre_fail(call, "the GPU: error %d", code);
}

static cadre_result total(void *self, cadre_call *call)
{
    struct model *m = self;
    double sum = 0;
    int code = download(m->values, m->memory, m->n * sizeof *m->values);
    for (size_t i = 0; i < m->n; i++)
        sum += (double)m->values[i];
    return code == 0 ? cadre_return_double(call, sum) : cadre_fail(call, "the GPU: error %d", code);
}

#define MOVE                                                                  \
    {                                                                         \
        CADRE_WEIGHTS_METHOD, CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, move, NULL \
    }

static const cadre_method trainer[] = {MOVE, {"step", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, step, NULL}};
static const cadre_method server[] = {MOVE, {"total", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, total, NULL}};
static const cadre_class classes[] = {
    {"Trainer", create_trainer, destroy, trainer, 2},
    {"Server", create_server, destroy, server, 2},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "device_weights", classes, 2};
    return &info;
}
