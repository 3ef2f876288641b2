// SPDX-License-Identifier: Apache-2.0
// Methods that make something go wrong on a GPU, for tests/gpu/test_gpu.sh. C that is C++, too: the module trouble
// (trouble.cu) and the one for the stand-ins for the driver and for NCCL (stand_in_trouble.c) include it once, and
// define these. An `int` is an error of CUDA, 0 = none.
#pragma once

#include <cadre/collective.h>
#include <stdbool.h>

static cadre_result gpu_choose(cadre_worker *worker); // the GPU of this rank
static const char *gpu_error_name(int error);
static bool gpu_is_full(int error); // it has no memory left
static int gpu_memory(size_t *ret_all);
static int gpu_alloc(float **ret, size_t size);
static void gpu_free(float *memory); // waits for kernels
static int gpu_read(float *ret, const float *from);
static int gpu_set(float *to, float x, float *ret); // by a kernel, and reads it
static int gpu_stream(void **ret);
static void gpu_stream_free(void *stream);
static int gpu_spin(void *stream); // a kernel that runs for longer than HANG_LIMIT_MS, and ends
static void gpu_spin_end(void);    // it may end now, however slow this process was

enum { HANG_LIMIT_MS = 1000 };

static cadre_result create(cadre_worker *worker, const char *init, size_t init_len, void **ret_self)
{
    (void)init, (void)init_len;
    *ret_self = worker;
    return gpu_choose(worker);
}

static cadre_result failed(cadre_call *call, const char *doing, int error)
{
    cadre_fail(call, "%s: %s", doing, gpu_error_name(error));
    return gpu_is_full(error) ? CADRE_OUT_OF_MEMORY : CADRE_ERROR;
}

static cadre_result take_all(void *self, cadre_call *call)
{
    size_t all;
    float *memory;
    (void)self;
    int error = gpu_memory(&all);
    if (error == 0)
        error = gpu_alloc(&memory, all + (1 << 20));
    if (error != 0)
        return failed(call, "all memory", error);
    gpu_free(memory);
    return cadre_return_double(call, 0);
}

static cadre_result write_to(cadre_call *call, float *to, float x, float *ret)
{
    int error = gpu_set(to, x, ret);
    return error == 0 ? CADRE_OK : failed(call, "a kernel", error);
}

static cadre_result get_one(void *self, cadre_call *call)
{
    float *to, x = 0;
    (void)self;
    int error = gpu_alloc(&to, sizeof *to);
    if (error != 0)
        return failed(call, "memory", error);
    cadre_result r = write_to(call, to, 1, &x);
    gpu_free(to);
    return r == CADRE_OK ? cadre_return_double(call, (double)x) : r;
}

// The context is of no use after this.
static cadre_result stray(void *self, cadre_call *call)
{
    float x;
    (void)self;
    cadre_result r = write_to(call, (float *)16, 1, &x);
    return r == CADRE_OK ? cadre_return_double(call, (double)x) : r;
}

static cadre_result reduce_on(cadre_call *call, cadre_comm *comm)
{
    float *to, x = 0;
    int error = gpu_alloc(&to, sizeof *to);
    if (error != 0)
        return failed(call, "memory", error);
    cadre_result r = write_to(call, to, (float)(cadre_comm_rank(comm) + 1), &x);
    if (r == CADRE_OK && (r = cadre_all_reduce(comm, "F32", to, to, 1, CADRE_SUM)) != CADRE_OK)
        cadre_fail(call, "%s", cadre_comm_error(comm));
    if (r == CADRE_OK && (error = gpu_read(&x, to)) != 0)
        r = failed(call, "reading", error);
    gpu_free(to);
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

// An all_reduce after a kernel that spins. The call returns; the wait ends at the limit, with the error.
static cadre_result reduce_behind(cadre_call *call, cadre_comm *comm, void *stream)
{
    float *to;
    int error = gpu_alloc(&to, sizeof *to);
    if (error != 0)
        return failed(call, "memory", error);
    error = gpu_spin(stream);
    cadre_result r = error == 0 ? CADRE_OK : failed(call, "a kernel", error);
    if (r == CADRE_OK && (r = cadre_all_reduce(comm, "F32", to, to, 1, CADRE_SUM)) != CADRE_OK)
        cadre_fail(call, "the call: %s", cadre_comm_error(comm));
    if (r == CADRE_OK && (r = cadre_comm_wait(comm)) != CADRE_OK)
        cadre_fail(call, "%s", cadre_comm_error(comm));
    gpu_spin_end();
    gpu_free(to);
    return r == CADRE_OK ? cadre_return_double(call, 0) : r;
}

static cadre_result hang(void *self, cadre_call *call)
{
    cadre_comm_options options;
    cadre_comm *comm;
    void *stream;
    (void)self;
    int error = gpu_stream(&stream);
    if (error != 0)
        return failed(call, "a stream", error);
    cadre_comm_options_init(&options);
    options.backend = "nccl";
    options.limit_ms = HANG_LIMIT_MS;
    options.stream = stream;
    cadre_result r = cadre_comm_new(call, &options, &comm);
    if (r == CADRE_OK) {
        r = reduce_behind(call, comm, stream);
        cadre_comm_free(comm);
    }
    gpu_stream_free(stream);
    return r;
}

const cadre_module_info *cadre_module(void)
{
    static const cadre_method methods[] = {
        {"take_all", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, take_all, "asks for more memory than the GPU has"},
        {"get_one", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_one, "returns 1, by a kernel"},
        {"stray", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, stray, "writes to an illegal address"},
        {"reduce", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, reduce, "returns the sum of rank + 1 over all ranks, by NCCL"},
        {"hang", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, hang, "an all_reduce on a stream that stands still"},
    };
    static const cadre_class classes[] = {{"Trouble", create, NULL, methods, sizeof methods / sizeof *methods}};
    static const cadre_module_info info = {CADRE_ABI, "trouble", classes, 1};
    return &info;
}
