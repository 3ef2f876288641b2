// SPDX-License-Identifier: Apache-2.0
// The methods of tests/gpu/trouble.cu for the stand-ins for the driver and for NCCL: its kernels are functions of C
// that the stand-in runs (cuda_stand_in.h).
#include <cadre/collective.h>

#include <dlfcn.h>
#include <stdbool.h>
#include <time.h>

enum { NO_MEMORY = 2, NOT_READY = 600, ILLEGAL_ADDRESS = 700, HANG_LIMIT_MS = 1000, SPIN_MS = 2500 };

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

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    int gpus = 0;
    (void)init, (void)init_len;
    *ret_self = worker;
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

static cadre_result failed(cadre_call *call, const char *doing, int code)
{
    const char *name = code == NO_MEMORY         ? "cudaErrorMemoryAllocation"
                       : code == ILLEGAL_ADDRESS ? "cudaErrorIllegalAddress"
                                                 : "cudaErrorUnknown";
    cadre_fail(call, "%s: %s", doing, name);
    return code == NO_MEMORY ? CADRE_OUT_OF_MEMORY : CADRE_ERROR;
}

static cadre_result take_all(void *self, cadre_call *call)
{
    size_t left, all;
    uint64_t memory;
    (void)self;
    int code = info_of(&left, &all);
    if (code == 0)
        code = alloc(&memory, all + 1);
    if (code != 0)
        return failed(call, "all memory", code);
    release(memory);
    return cadre_return_double(call, 0);
}

static void set_kernel(void *memory, size_t n, double x)
{
    (void)n;
    *(float *)memory = (float)x;
}

static cadre_result write_to(cadre_call *call, uint64_t to, float x, float *ret)
{
    int code;
    launch(set_kernel, (void *)(uintptr_t)to, 1, (double)x, NULL);
    while ((code = query(NULL)) == NOT_READY)
        ;
    if (code == 0)
        code = download(ret, to, sizeof *ret);
    return code == 0 ? CADRE_OK : failed(call, "a kernel", code);
}

static cadre_result get_one(void *self, cadre_call *call)
{
    uint64_t to;
    float x = 0;
    (void)self;
    int code = alloc(&to, sizeof x);
    if (code != 0)
        return failed(call, "memory", code);
    cadre_result r = write_to(call, to, 1, &x);
    release(to);
    return r == CADRE_OK ? cadre_return_double(call, (double)x) : r;
}

static cadre_result stray(void *self, cadre_call *call)
{
    float x;
    (void)self;
    cadre_result r = write_to(call, 16, 1, &x);
    return r == CADRE_OK ? cadre_return_double(call, (double)x) : r;
}

static cadre_result reduce_on(cadre_call *call, cadre_comm *comm)
{
    uint64_t to;
    float x = 0;
    int code = alloc(&to, sizeof x);
    if (code != 0)
        return failed(call, "memory", code);
    void *memory = (void *)(uintptr_t)to;
    cadre_result r = write_to(call, to, (float)(cadre_comm_rank(comm) + 1), &x);
    if (r == CADRE_OK && (r = cadre_all_reduce(comm, "F32", memory, memory, 1, CADRE_SUM)) != CADRE_OK)
        cadre_fail(call, "%s", cadre_comm_error(comm));
    if (r == CADRE_OK && (code = download(&x, to, sizeof x)) != 0)
        r = failed(call, "reading", code);
    release(to);
    return r == CADRE_OK ? cadre_return_double(call, (double)x) : r;
}

static cadre_result reduce(void *self, cadre_call *call)
{
    cadre_comm_options options;
    cadre_comm *comm;
    (void)self;
    cadre_comm_options_init(&options);
    options.backend = "nccl";
    cadre_result r = cadre_comm_new(call, &options, &comm);
    if (r != CADRE_OK)
        return r;
    r = reduce_on(call, comm);
    cadre_comm_free(comm);
    return r;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Longer than the limit of the communicator; but it ends.
static bool spin(void *ctx)
{
    return now_ms() > *(const int64_t *)ctx;
}

static cadre_result reduce_behind(cadre_call *call, cadre_comm *comm, void *stream)
{
    static int64_t end;
    uint64_t to;
    int code = alloc(&to, sizeof(float));
    if (code != 0)
        return failed(call, "memory", code);
    void *memory = (void *)(uintptr_t)to;
    end = now_ms() + SPIN_MS;
    put(stream, spin, &end);
    cadre_result r = cadre_all_reduce(comm, "F32", memory, memory, 1, CADRE_SUM);
    if (r != CADRE_OK)
        cadre_fail(call, "the call: %s", cadre_comm_error(comm));
    if (r == CADRE_OK && (r = cadre_comm_wait(comm)) != CADRE_OK)
        cadre_fail(call, "%s", cadre_comm_error(comm));
    release(to); // waits for the kernel
    return r == CADRE_OK ? cadre_return_double(call, 0) : r;
}

static cadre_result hang(void *self, cadre_call *call)
{
    cadre_comm_options options;
    cadre_comm *comm;
    void *stream;
    (void)self;
    int code = new_stream(&stream, 1);
    if (code != 0)
        return failed(call, "a stream", code);
    cadre_comm_options_init(&options);
    options.backend = "nccl";
    options.limit_ms = HANG_LIMIT_MS;
    options.stream = stream;
    cadre_result r = cadre_comm_new(call, &options, &comm);
    if (r == CADRE_OK) {
        r = reduce_behind(call, comm, stream);
        cadre_comm_free(comm);
    }
    free_stream(stream);
    return r;
}

static const cadre_method methods[] = {
    {"take_all", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, take_all, NULL},
    {"get_one", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_one, NULL},
    {"stray", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, stray, NULL},
    {"reduce", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, reduce, NULL},
    {"hang", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, hang, NULL},
};

static const cadre_class classes[] = {
    {"Trouble", create, NULL, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info *cadre_module(void)
{
    static const cadre_module_info info = {CADRE_ABI, "stand_in_trouble", classes, 1};
    return &info;
}
