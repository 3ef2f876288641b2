// SPDX-License-Identifier: Apache-2.0
// The module trouble on the stand-ins for the driver and for NCCL: its kernels are functions of C that the stand-in
// runs (cuda_stand_in.h).
#include "tests/gpu/trouble_methods.h"

#include <dlfcn.h>
#include <stdatomic.h>

enum { NO_MEMORY = 2, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };

static int (*count)(int *ret);
static int (*choose)(void *context);
static int (*info_of)(size_t *free, size_t *total);
static int (*alloc)(uint64_t *ret, size_t size);
static int (*release)(uint64_t memory);
static int (*download)(void *to, uint64_t from, size_t len);
static int (*new_stream)(void **ret, unsigned flags);
static int (*free_stream)(void *stream);
static int (*query)(void *stream);
static void (*launch)(void (*kernel)(void *memory, size_t n, double x), void *memory, size_t n, double x, void *stream);
static void (*put)(void *stream, bool (*turn)(void *ctx), void *ctx);

static cadre_result load(cadre_worker *worker)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"cuDeviceGetCount", &count},    {"cuCtxSetCurrent", &choose},
                   {"cuMemGetInfo_v2", &info_of},   {"cuMemAlloc_v2", &alloc},
                   {"cuMemFree_v2", &release},      {"cuMemcpyDtoH_v2", &download},
                   {"cuStreamCreate", &new_stream}, {"cuStreamQuery", &query},
                   {"stand_in_launch", &launch},    {"cuStreamDestroy_v2", &free_stream},
                   {"stand_in_put", &put}};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *p = driver ? dlsym(driver, symbols[i].name) : NULL;
        if (!p)
            return cadre_create_fail(worker, "there is no stand-in here that has %s", symbols[i].name);
        memcpy(symbols[i].to, &p, sizeof p);
    }
    return CADRE_OK;
}

static cadre_result gpu_choose(cadre_worker *worker)
{
    int gpus = 0;
    cadre_result r = load(worker);
    if (r != CADRE_OK)
        return r;
    count(&gpus);
    if (cadre_device(worker) >= gpus) {
        cadre_create_fail(worker, "GPU %d: cudaErrorInvalidDevice", cadre_device(worker));
        return CADRE_NO_DEVICE;
    }
    choose(worker); // as CUDA's runtime does
    return CADRE_OK;
}

static const char *gpu_error_name(int error)
{
    return error == NO_MEMORY         ? "cudaErrorMemoryAllocation"
           : error == ILLEGAL_ADDRESS ? "cudaErrorIllegalAddress"
                                      : "cudaErrorUnknown";
}

static bool gpu_is_full(int error)
{
    return error == NO_MEMORY;
}

static int gpu_memory(size_t *ret_all)
{
    size_t left;
    return info_of(&left, ret_all);
}

static int gpu_alloc(float **ret, size_t size)
{
    uint64_t memory = 0;
    int error = alloc(&memory, size);
    *ret = (float *)(uintptr_t)memory;
    return error;
}

static void gpu_free(float *memory)
{
    release((uintptr_t)memory);
}

static int gpu_read(float *ret, const float *from)
{
    return download(ret, (uintptr_t)from, sizeof *ret);
}

static void set_kernel(void *memory, size_t n, double x)
{
    (void)n;
    *(float *)memory = (float)x;
}

static int gpu_set(float *to, float x, float *ret)
{
    int error;
    launch(set_kernel, to, 1, (double)x, NULL);
    while ((error = query(NULL)) == NOT_READY)
        ;
    return error == 0 ? gpu_read(ret, to) : error;
}

static int gpu_stream(void **ret)
{
    return new_stream(ret, 1);
}

static void gpu_stream_free(void *stream)
{
    free_stream(stream);
}

static bool spin(void *ctx)
{
    return atomic_load((atomic_bool *)ctx);
}

static atomic_bool spin_ends;

static int gpu_spin(void *stream)
{
    atomic_store(&spin_ends, false);
    put(stream, spin, &spin_ends);
    return 0;
}

static void gpu_spin_end(void)
{
    atomic_store(&spin_ends, true);
}
