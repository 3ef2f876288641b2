// SPDX-License-Identifier: Apache-2.0
/* Tensors that stay on the GPU from call to call, and go from rank to rank without the host:

   x=$(kubectl cadre call tensors ramp 1000 --rank 0 --keep)     the tensor stays on the GPU of rank 0
   kubectl cadre call tensors sum "$x"                           all ranks copy it from there
   kubectl cadre free tensors "$x"                               its memory is the GPU's again

   In a worker without a GPU, the same methods run in memory of the host. It builds alone, as gpu_accumulator does:

   nvcc -O2 -gencode arch=compute_80,code=sm_80 -gencode 'arch=compute_90,code=[sm_90,compute_90]' -shared \
       -Xcompiler -fPIC,-static-libstdc++,-static-libgcc -Xlinker -s,--exclude-libs,ALL \
       -o gpu_tensor.so gpu_tensor.cu
*/
#include <cadre/worker.h>

namespace
{

constexpr int THREADS = 256;
constexpr uint64_t ROWS_MAX = 1 << 26;

cadre_worker *the_worker; // one object in each process

cudaStream_t stream_of(const cadre_view &v)
{
    return static_cast<cudaStream_t>(v.stream);
}

unsigned blocks_of(uint64_t n)
{
    return static_cast<unsigned>((n + THREADS - 1) / THREADS);
}

// Without a GPU there is no kernel, and the runtime of CUDA may have no driver to ask.
cadre_result launched(cadre_call *call, const cadre_view &v)
{
    cudaError_t error = v.device < 0 ? cudaSuccess : cudaGetLastError();
    return error == cudaSuccess ? CADRE_OK : cadre_fail(call, "a kernel: %s", cudaGetErrorName(error));
}

// The constructor chooses the device once, because all methods run on its thread.
cadre_result create(cadre_worker *worker, const char *, size_t, void **ret_self)
{
    int device = cadre_device(worker);
    cudaError_t error = device < 0 ? cudaSuccess : cudaSetDevice(device);
    if (error != cudaSuccess) {
        cadre_create_fail(worker, "GPU %d: %s (%s)", device, cudaGetErrorString(error), cudaGetErrorName(error));
        return CADRE_NO_DEVICE;
    }
    *ret_self = the_worker = worker;
    return CADRE_OK;
}

// A batch with the tensor "x" of n rows, whose values the caller writes to ret->data.
cadre_result make(cadre_call *call, uint64_t n, cadre_view *ret)
{
    const uint64_t shape[] = {n};
    const cadre_tensor x = {"x", "F32", shape, 1, nullptr, 0};
    return cadre_return_views(call, &x, 1, nullptr, nullptr, ret);
}

cadre_result take(cadre_call *call, cadre_view *ret)
{
    cadre_result r = cadre_arg_view(call, "x", ret);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "x", nullptr);
    if (r == CADRE_OK && (ret->n_dims != 1 || ret->len != ret->shape[0] * sizeof(float)))
        r = cadre_fail(call, "x is a list of F32");
    return r;
}

__global__ void ramp_kernel(float *x, uint64_t n)
{
    uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        x[i] = static_cast<float>(i);
}

// The kernel need not be waited for: the host does that when the method has returned.
cadre_result ramp(void *, cadre_call *call)
{
    int64_t n;
    cadre_view x;
    cadre_result r = cadre_arg_int64(call, 0, "n", &n);
    if (r == CADRE_OK)
        r = cadre_args_only(call, "n", nullptr);
    if (r == CADRE_OK && (n < 1 || static_cast<uint64_t>(n) > ROWS_MAX))
        r = cadre_fail(call, "n is 1 to %llu", static_cast<unsigned long long>(ROWS_MAX));
    if (r == CADRE_OK)
        r = make(call, static_cast<uint64_t>(n), &x);
    if (r != CADRE_OK)
        return r;
    auto *values = static_cast<float *>(x.data);
    for (int64_t i = 0; x.device < 0 && i < n; i++)
        values[i] = static_cast<float>(i);
    if (x.device >= 0)
        ramp_kernel<<<blocks_of(x.shape[0]), THREADS, 0, stream_of(x)>>>(values, x.shape[0]);
    return launched(call, x);
}

__global__ void twice_kernel(const float *x, float *y, uint64_t n)
{
    uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x;
    if (i < n)
        y[i] = 2 * x[i];
}

cadre_result twice(void *, cadre_call *call)
{
    cadre_view x, y;
    cadre_result r = take(call, &x);
    if (r == CADRE_OK)
        r = make(call, x.shape[0], &y);
    if (r != CADRE_OK)
        return r;
    auto *from = static_cast<const float *>(x.data);
    auto *to = static_cast<float *>(y.data);
    for (uint64_t i = 0; x.device < 0 && i < x.shape[0]; i++)
        to[i] = 2 * from[i];
    if (x.device >= 0)
        twice_kernel<<<blocks_of(x.shape[0]), THREADS, 0, stream_of(x)>>>(from, to, x.shape[0]);
    return launched(call, y);
}

__global__ void sum_kernel(const float *x, uint64_t n, double *sum)
{
    double mine = 0;
    for (uint64_t i = threadIdx.x; i < n; i += blockDim.x)
        mine += static_cast<double>(x[i]);
    atomicAdd(sum, mine);
}

cadre_result sum_on_device(cadre_call *call, const cadre_view &x, double *ret)
{
    double *sum = nullptr;
    cudaStream_t stream = stream_of(x);
    cudaError_t error = cudaMallocAsync(&sum, sizeof *sum, stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    if (error == cudaSuccess) {
        sum_kernel<<<1, THREADS, 0, stream>>>(static_cast<const float *>(x.data), x.shape[0], sum);
        error = cudaGetLastError();
    }
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(ret, sum, sizeof *ret, cudaMemcpyDeviceToHost, stream);
    if (sum)
        cudaFreeAsync(sum, stream);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(stream);
    return error == cudaSuccess ? CADRE_OK : cadre_fail(call, "the sum: %s", cudaGetErrorName(error));
}

cadre_result sum(void *, cadre_call *call)
{
    cadre_view x;
    double all = 0;
    cadre_result r = take(call, &x);
    if (r == CADRE_OK && x.device >= 0)
        r = sum_on_device(call, x, &all);
    for (uint64_t i = 0; r == CADRE_OK && x.device < 0 && i < x.shape[0]; i++)
        all += static_cast<double>(static_cast<const float *>(x.data)[i]);
    return r == CADRE_OK ? cadre_return_double(call, all) : r;
}

cadre_result rows(void *, cadre_call *call)
{
    cadre_view x;
    cadre_result r = take(call, &x);
    cudaError_t error = r == CADRE_OK && x.device >= 0 ? cudaStreamSynchronize(stream_of(x)) : cudaSuccess;
    if (error != cudaSuccess)
        return cadre_fail(call, "waiting for x: %s", cudaGetErrorName(error));
    return r == CADRE_OK ? cadre_return_int64(call, static_cast<int64_t>(x.shape[0])) : r;
}

cadre_result left(void *, cadre_call *call)
{
    size_t left = 0, all;
    cadre_result r = cadre_args_only(call, nullptr);
    if (r != CADRE_OK)
        return r;
    cudaError_t error = cadre_device(the_worker) < 0 ? cudaSuccess : cudaMemGetInfo(&left, &all);
    if (error != cudaSuccess)
        return cadre_fail(call, "%s", cudaGetErrorName(error));
    return cadre_return_int64(call, static_cast<int64_t>(left));
}

const cadre_method methods[] = {
    {"ramp", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, ramp, "returns the tensor x of n rows: 0, 1, ..."},
    {"twice", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, twice, "takes x, returns x with each value doubled"},
    {"sum", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, sum, "takes x, returns the sum of its values"},
    {"rows", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, rows, "takes x, waits until it is there, returns its number of rows"},
    {"left", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, left, "returns how many bytes of the GPU are free"},
};

const cadre_class classes[] = {
    {"Tensors", create, nullptr, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info info = {CADRE_ABI, "gpu_tensor", classes, sizeof classes / sizeof *classes};

} // namespace

const cadre_module_info *cadre_module(void)
{
    return &info;
}
