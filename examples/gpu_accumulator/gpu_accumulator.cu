// SPDX-License-Identifier: Apache-2.0
/* The accumulator with its number in the memory of the GPU that the worker was given: as there, it begins as the rank
   (plus init.start), and add() changes it, here by a kernel. At run time it needs no CUDA library but the driver's.
   It builds alone, here for GPUs of 2020 (A100) and of 2022 (H100), and for later ones as PTX:

   nvcc -O2 -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[sm_90,compute_90]' -shared \
       -Xcompiler -fPIC,-static-libstdc++,-static-libgcc -Xlinker -s,--exclude-libs,ALL \
       -o gpu_accumulator.so gpu_accumulator.cu
*/
#include <cadre/worker.h>
#include <stdlib.h>

namespace
{

struct accumulator {
    double *value; // on the device
};

// A context that is full or broken is told apart from a node without a driver: people fix them in different places.
cadre_result explain(cadre_worker *worker, const char *doing, cudaError_t error)
{
    int driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        cadre_create_fail(worker,
                          "there is no CUDA driver (libcuda.so.1): is there a GPU driver on this machine? In a "
                          "cluster, the pod must also request nvidia.com/gpu");
        return CADRE_NO_DEVICE;
    }
    cadre_create_fail(worker, "GPU %d: %s: %s (%s)", cadre_device(worker), doing, cudaGetErrorString(error),
                      cudaGetErrorName(error));
    switch (error) {
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
        return CADRE_NO_DEVICE;
    case cudaErrorMemoryAllocation:
        return CADRE_OUT_OF_MEMORY;
    default:
        return CADRE_ERROR;
    }
}

cadre_result failed(cadre_call *call, const char *doing, cudaError_t error)
{
    cadre_fail(call, "%s: %s (%s)", doing, cudaGetErrorString(error), cudaGetErrorName(error));
    return CADRE_ERROR;
}

void destroy(void *self)
{
    auto *a = static_cast<accumulator *>(self);
    cudaFree(a->value);
    free(a);
}

cadre_result create(cadre_worker *worker, const char *, size_t, void **ret_self)
{
    double start;
    cadre_result r = cadre_init_double(worker, "start", 0, &start);
    if (r != CADRE_OK)
        return r;
    if (cadre_device(worker) < 0) {
        cadre_create_fail(worker, "this worker was given no GPU (CADRE_DEVICE is not set): in a cluster let the "
                                  "pod ask for nvidia.com/gpu, and see worker.gpus; in a local run set "
                                  "CUDA_VISIBLE_DEVICES, such as 0,1");
        return CADRE_NO_DEVICE;
    }
    start += cadre_rank(worker);
    auto *a = static_cast<accumulator *>(calloc(1, sizeof(accumulator)));
    if (!a)
        return CADRE_OUT_OF_MEMORY;
    // All methods run on the thread that runs this, so it chooses the device once for all of them.
    const char *doing = "choosing it";
    cudaError_t error = cudaSetDevice(cadre_device(worker));
    if (error == cudaSuccess) {
        doing = "getting memory";
        error = cudaMalloc(&a->value, sizeof *a->value);
    }
    if (error == cudaSuccess) {
        doing = "writing the first value";
        error = cudaMemcpy(a->value, &start, sizeof start, cudaMemcpyHostToDevice);
    }
    if (error != cudaSuccess) {
        r = explain(worker, doing, error);
        destroy(a);
        return r;
    }
    *ret_self = a;
    return CADRE_OK;
}

cadre_result return_value(const accumulator *a, cadre_call *call, double plus)
{
    double value;
    // Waits for the kernels before it, so their errors appear here.
    cudaError_t error = cudaMemcpy(&value, a->value, sizeof value, cudaMemcpyDeviceToHost);
    return error == cudaSuccess ? cadre_return_double(call, value + plus) : failed(call, "reading the value", error);
}

__global__ void add_kernel(double *value, double x)
{
    *value += x;
}

cadre_result add(void *self, cadre_call *call)
{
    auto *a = static_cast<accumulator *>(self);
    double x;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", NULL);
    if (r != CADRE_OK)
        return r;
    add_kernel<<<1, 1>>>(a->value, x);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? return_value(a, call, 0) : failed(call, "starting the kernel", error);
}

cadre_result get_value(void *self, cadre_call *call)
{
    cadre_result r = cadre_args_only(call, nullptr);
    return r == CADRE_OK ? return_value(static_cast<accumulator *>(self), call, 0) : r;
}

cadre_result foo_rank_zero(void *self, cadre_call *call)
{
    double x, y;
    cadre_result r = cadre_arg_double(call, 0, "x", &x);
    if (r == CADRE_OK)
        r = cadre_arg_double(call, 1, "y", &y);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", "y", NULL);
    return r == CADRE_OK ? return_value(static_cast<accumulator *>(self), call, x + y) : r;
}

const cadre_method methods[] = {
    {"add", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, add, "adds x to the value and returns it"},
    {"get_value", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_value, "returns the value"},
    {"foo_rank_zero", CADRE_ALL_TO_ALL, CADRE_EXECUTE_RANK_ZERO, foo_rank_zero, "returns rank 0's value + x + y"},
};

const cadre_class classes[] = {
    {"Accumulator", create, destroy, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info info = {CADRE_ABI, "gpu_accumulator", classes, sizeof classes / sizeof *classes};

} // namespace

const cadre_module_info *cadre_module(void)
{
    return &info;
}
