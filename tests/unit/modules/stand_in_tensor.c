// SPDX-License-Identifier: Apache-2.0
// The methods of examples/gpu_tensor, and trouble on demand, for the stand-in for the driver: its kernels are functions
// of C that the stand-in runs (cuda_stand_in.h).
#include <cadre/worker.h>

#include <dlfcn.h>

typedef void (*kernel)(void *memory, size_t n, double x);

static void (*launch)(kernel k, void *memory, size_t n, double x, void *stream);
static int (*copy)(uint64_t to, uint64_t from, size_t len, void *stream);
static int (*query)(void *stream);
static int (*info_of)(size_t *free, size_t *total);
static int (*choose)(void *context);
static double summed;

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"stand_in_launch", &launch},
                   {"cuMemcpyAsync", &copy},
                   {"cuStreamQuery", &query},
                   {"cuMemGetInfo_v2", &info_of},
                   {"cuCtxSetCurrent", &choose}};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    (void)init, (void)init_len;
    *ret_self = worker;
    if (!driver)
        return cadre_device(worker) < 0 ? CADRE_OK : cadre_create_fail(worker, "there is no CUDA driver here");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *p = dlsym(driver, symbols[i].name);
        if (!p)
            return cadre_create_fail(worker, "this is not the stand-in: it has no %s", symbols[i].name);
        memcpy(symbols[i].to, &p, sizeof p);
    }
    if (cadre_device(worker) >= 0)
        choose(worker); // as CUDA's runtime does
    return CADRE_OK;
}

static void ramp_kernel(void *memory, size_t n, double x)
{
    for (size_t i = 0; i < n; i++)
        ((float *)memory)[i] = (float)((double)i * x);
}

static void twice_kernel(void *memory, size_t n, double x)
{
    for (size_t i = 0; i < n; i++)
        ((float *)memory)[i] *= (float)x;
}

static void sum_kernel(void *memory, size_t n, double x)
{
    double all = x;
    for (size_t i = 0; i < n; i++)
        all += (double)((const float *)memory)[i];
    __atomic_store(&summed, &all, __ATOMIC_SEQ_CST);
}

static void run(kernel k, const cadre_view *v, double x)
{
    if (v->device < 0)
        k(v->data, v->shape[0], x);
    else
        launch(k, v->data, v->shape[0], x, v->stream);
}

static cadre_result make(cadre_call *call, uint64_t n, cadre_view *ret)
{
    const uint64_t shape[] = {n};
    const cadre_tensor x = {"x", "F32", shape, 1, NULL, 0};
    return cadre_return_views(call, &x, 1, NULL, NULL, ret);
}

static cadre_result ramp(void *self, cadre_call *call)
{
    int64_t n;
    cadre_view x;
    (void)self;
    cadre_result r = cadre_arg_int64(call, 0, "n", &n);
    if (r == CADRE_OK)
        r = make(call, (uint64_t)n, &x);
    if (r == CADRE_OK)
        run(ramp_kernel, &x, 1);
    return r;
}

static cadre_result twice(void *self, cadre_call *call)
{
    cadre_view x, y;
    (void)self;
    cadre_result r = cadre_arg_view(call, "x", &x);
    if (r == CADRE_OK)
        r = make(call, x.shape[0], &y);
    if (r != CADRE_OK)
        return r;
    if (x.device < 0)
        memcpy(y.data, x.data, x.len);
    else if (copy((uintptr_t)y.data, (uintptr_t)x.data, x.len, x.stream) != 0)
        return cadre_fail(call, "a copy");
    run(twice_kernel, &y, 2);
    return CADRE_OK;
}

static cadre_result sum(void *self, cadre_call *call)
{
    cadre_view x;
    (void)self;
    cadre_result r = cadre_arg_view(call, "x", &x);
    if (r != CADRE_OK)
        return r;
    run(sum_kernel, &x, 0);
    for (int code = 600; x.device >= 0 && code;) // not ready
        if ((code = query(x.stream)) != 0 && code != 600)
            return cadre_fail(call, "the sum: %d", code);
    double all;
    __atomic_load(&summed, &all, __ATOMIC_SEQ_CST);
    return cadre_return_double(call, all);
}

static cadre_result rows(void *self, cadre_call *call)
{
    cadre_view x;
    (void)self;
    cadre_result r = cadre_arg_view(call, "x", &x);
    while (r == CADRE_OK && x.device >= 0 && query(x.stream) == 600) // not ready
        ;
    return r == CADRE_OK ? cadre_return_int64(call, (int64_t)x.shape[0]) : r;
}

static cadre_result left(void *self, cadre_call *call)
{
    size_t free = 0, total;
    if (cadre_device(self) >= 0)
        info_of(&free, &total);
    return cadre_return_int64(call, (int64_t)free);
}

// A write to where nothing is, outside of what the host of the module waits for.
static cadre_result stray(void *self, cadre_call *call)
{
    int code;
    (void)self;
    launch(ramp_kernel, (void *)16, 1, 1, NULL);
    do
        code = query(NULL);
    while (code == 600); // not ready
    return cadre_fail(call, "a kernel: %s", code == 700 ? "cudaErrorIllegalAddress" : "no error");
}

static const cadre_method methods[] = {
    {"ramp", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, ramp, NULL},
    {"twice", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, twice, NULL},
    {"sum", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, sum, NULL},
    {"rows", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, rows, NULL},
    {"left", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, left, NULL},
    {"stray", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, stray, NULL},
};

static const cadre_class classes[] = {
    {"Tensors", create, NULL, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "stand_in_tensor", classes, 1};
    return &info;
}
