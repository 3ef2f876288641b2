// SPDX-License-Identifier: Apache-2.0
/* The module trouble on a GPU. */
#include "tests/gpu/trouble_methods.h"

static cadre_result gpu_choose(cadre_worker *worker)
{
    int device = cadre_device(worker);
    cudaError_t error = cudaSetDevice(device);
    if (error == cudaSuccess)
        return CADRE_OK;
    cadre_create_fail(worker, "GPU %d: %s", device, cudaGetErrorName(error));
    return CADRE_NO_DEVICE;
}

static const char *gpu_error_name(int error)
{
    return cudaGetErrorName(static_cast<cudaError_t>(error));
}

static bool gpu_is_full(int error)
{
    return error == cudaErrorMemoryAllocation;
}

static int gpu_memory(size_t *ret_all)
{
    size_t left;
    return cudaMemGetInfo(&left, ret_all);
}

static int gpu_alloc(float **ret, size_t size)
{
    return cudaMalloc(ret, size);
}

static void gpu_free(float *memory)
{
    cudaFree(memory);
}

static int gpu_read(float *ret, const float *from)
{
    return cudaMemcpy(ret, from, sizeof *ret, cudaMemcpyDeviceToHost);
}

static __global__ void set_kernel(float *to, float x)
{
    *to = x;
}

static int gpu_set(float *to, float x, float *ret)
{
    set_kernel<<<1, 1>>>(to, x);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? gpu_read(ret, to) : error;
}

static int gpu_stream(void **ret)
{
    return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t *>(ret), cudaStreamNonBlocking);
}

static void gpu_stream_free(void *stream)
{
    cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

constexpr long long SPIN_NS = 5000000000;

static __global__ void spin_kernel()
{
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < SPIN_NS);
}

static int gpu_spin(void *stream)
{
    spin_kernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
    return cudaGetLastError();
}

static void gpu_spin_end(void) // it ends by itself
{
}
