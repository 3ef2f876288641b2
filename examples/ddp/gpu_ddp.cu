// SPDX-License-Identifier: Apache-2.0
/* A GPU as a device: the threads of kernels.h. The module gpu_ddp is this file, ddp.c and the models. Each rank needs a
   GPU of its own, because NCCL averages the gradients. It builds alone, as gpu_accumulator does:

   nvcc -O2 -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[sm_90,compute_90]' -shared \
       -Xcompiler -fPIC,-fvisibility=hidden,-static-libstdc++,-static-libgcc -Xlinker -s,--exclude-libs,ALL \
       -o gpu_ddp.so ddp.c model.c mlp.c attention.c gpu_ddp.cu
*/
#include "kernels.h"

namespace
{

cudaError_t first_error = cudaSuccess; // since the last device_finish()

void note(cudaError_t error)
{
    if (first_error == cudaSuccess)
        first_error = error;
}

unsigned blocks_of(size_t n, size_t each)
{
    return static_cast<unsigned>((n + each - 1) / each);
}

__global__ void multiply_kernel(product p)
{
    __shared__ strips shared;
    float sums[SIDE][SIDE] = {};
    const place at = {static_cast<size_t>(blockIdx.y) * TILE, static_cast<size_t>(blockIdx.x) * TILE, blockIdx.z};
    for (size_t first = 0; first < p.k; first += DEPTH) {
        product_load(&p, at, first, threadIdx.x, &shared);
        __syncthreads();
        product_add(&shared, threadIdx.x, sums);
        __syncthreads(); // before the next strips replace these
    }
    product_store(&p, at, threadIdx.x, sums);
}

} // namespace

extern const char device_backend[] = "nccl";

// All methods run on the thread that runs this, so it chooses the device once for all of them.
cadre_result device_open(cadre_worker *worker)
{
    if (cadre_device(worker) < 0) {
        cadre_create_fail(worker, "this worker was given no GPU (CADRE_DEVICE is not set): let the pod ask for "
                                  "nvidia.com/gpu, or use the module ddp");
        return CADRE_NO_DEVICE;
    }
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        cadre_create_fail(worker, "there is no CUDA driver (libcuda.so.1): is there a GPU driver on this machine? In a "
                                  "cluster, the pod must also request nvidia.com/gpu");
        return CADRE_NO_DEVICE;
    }
    cudaError_t error = cudaSetDevice(cadre_device(worker));
    if (error == cudaSuccess)
        return CADRE_OK;
    cadre_create_fail(worker, "GPU %d: %s (%s)", cadre_device(worker), cudaGetErrorString(error),
                      cudaGetErrorName(error));
    return CADRE_NO_DEVICE;
}

float *device_alloc(size_t n)
{
    void *at = nullptr;
    return cudaMalloc(&at, n * sizeof(float)) == cudaSuccess ? static_cast<float *>(at) : nullptr;
}

void device_free(float *at)
{
    cudaFree(at);
}

void device_clear(float *at, size_t n)
{
    note(cudaMemset(at, 0, n * sizeof *at));
}

void device_write(float *to, const float *from, size_t n)
{
    note(cudaMemcpy(to, from, n * sizeof *to, cudaMemcpyHostToDevice));
}

void device_read(float *to, const float *from, size_t n)
{
    note(cudaMemcpy(to, from, n * sizeof *to, cudaMemcpyDeviceToHost));
}

cadre_result device_finish(cadre_call *call)
{
    note(cudaDeviceSynchronize());
    cudaError_t error = first_error;
    first_error = cudaSuccess;
    return error == cudaSuccess
               ? CADRE_OK
               : cadre_fail(call, "the GPU: %s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
}

void device_multiply(const struct product *p)
{
    const dim3 blocks(blocks_of(p->n, TILE), blocks_of(p->m, TILE), static_cast<unsigned>(p->layers));
    multiply_kernel<<<blocks, THREADS>>>(*p);
    note(cudaGetLastError());
}

#define ROWS(name)                                                                                                     \
    static __global__ void name##_kernel(rows r)                                                                       \
    {                                                                                                                  \
        const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;                                   \
        if (i < r.n)                                                                                                   \
            name##_row(&r, i);                                                                                         \
    }                                                                                                                  \
    void device_##name(const struct rows *r)                                                                           \
    {                                                                                                                  \
        name##_kernel<<<blocks_of(r->n, THREADS), THREADS>>>(*r);                                                      \
        note(cudaGetLastError());                                                                                      \
    }
ROWS(tanh)
ROWS(tanh_back)
ROWS(softmax)
ROWS(softmax_back)
ROWS(squares)
ROWS(descend)
