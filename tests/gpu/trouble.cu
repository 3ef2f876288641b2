// SPDX-License-Identifier: Apache-2.0
/* What goes wrong on GPUs, on demand: for tests/gpu/test_gpu.sh. */
#include <cadre/collective.h>
#include <stdlib.h>

namespace
{

struct trouble {
    int device;
};

cadre_result failed(cadre_call *call, const char *doing, cudaError_t error)
{
    cadre_fail(call, "%s: %s", doing, cudaGetErrorName(error));
    return error == cudaErrorMemoryAllocation ? CADRE_OUT_OF_MEMORY : CADRE_ERROR;
}

void destroy(void *self)
{
    free(self);
}

cadre_result create(cadre_worker *worker, const char *, size_t, void **ret_self)
{
    auto *t = static_cast<trouble *>(calloc(1, sizeof(trouble)));
    if (!t)
        return CADRE_OUT_OF_MEMORY;
    t->device = cadre_device(worker);
    cudaError_t error = cudaSetDevice(t->device);
    if (error != cudaSuccess) {
        cadre_create_fail(worker, "GPU %d: %s", t->device, cudaGetErrorName(error));
        free(t);
        return CADRE_NO_DEVICE;
    }
    *ret_self = t;
    return CADRE_OK;
}

// More than there is.
cadre_result take_all(void *, cadre_call *call)
{
    size_t left, all;
    void *memory = nullptr;
    cudaError_t error = cudaMemGetInfo(&left, &all);
    if (error == cudaSuccess)
        error = cudaMalloc(&memory, all + (1 << 20));
    if (error != cudaSuccess)
        return failed(call, "all memory", error);
    cudaFree(memory);
    return cadre_return_double(call, 0);
}

__global__ void set_kernel(float *to, float x)
{
    *to = x;
}

cadre_result write_to(cadre_call *call, float *to, float x, float *ret)
{
    set_kernel<<<1, 1>>>(to, x);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        error = cudaMemcpy(ret, to, sizeof *ret, cudaMemcpyDeviceToHost);
    return error == cudaSuccess ? CADRE_OK : failed(call, "a kernel", error);
}

cadre_result get_one(void *, cadre_call *call)
{
    float *to = nullptr, x = 0;
    cudaError_t error = cudaMalloc(&to, sizeof *to);
    if (error != cudaSuccess)
        return failed(call, "memory", error);
    cadre_result r = write_to(call, to, 1, &x);
    cudaFree(to);
    return r == CADRE_OK ? cadre_return_double(call, x) : r;
}

// A write to where nothing is. The context is of no use after that.
cadre_result stray(void *, cadre_call *call)
{
    float x;
    cadre_result r = write_to(call, reinterpret_cast<float *>(16), 1, &x);
    return r == CADRE_OK ? cadre_return_double(call, x) : r;
}

// The sum of the ranks, on their devices, plus one each.
cadre_result reduce_on(cadre_call *call, cadre_comm *comm)
{
    float *to = nullptr, x = 0;
    cudaError_t error = cudaMalloc(&to, sizeof *to);
    if (error != cudaSuccess)
        return failed(call, "memory", error);
    cadre_result r = write_to(call, to, static_cast<float>(cadre_comm_rank(comm) + 1), &x);
    if (r == CADRE_OK && (r = cadre_all_reduce(comm, "F32", to, to, 1, CADRE_SUM)) != CADRE_OK)
        cadre_fail(call, "%s", cadre_comm_error(comm));
    if (r == CADRE_OK && (error = cudaMemcpy(&x, to, sizeof x, cudaMemcpyDeviceToHost)) != cudaSuccess)
        r = failed(call, "reading", error);
    cudaFree(to);
    return r == CADRE_OK ? cadre_return_double(call, x) : r;
}

cadre_result reduce(void *, cadre_call *call)
{
    cadre_comm_options options;
    cadre_comm *comm;
    cadre_comm_options_init(&options);
    options.backend = "nccl";
    cadre_result r = cadre_comm_new(call, &options, &comm);
    if (r != CADRE_OK)
        return r;
    r = reduce_on(call, comm);
    cadre_comm_free(comm);
    return r;
}

// So long, that the limit of the communicator comes first; but it ends, so that the GPU is free again.
constexpr long long SPIN_NS = 5000000000;
constexpr int64_t HANG_LIMIT_MS = 1000;

__global__ void spin_kernel()
{
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (now - begin < SPIN_NS);
}

// An all_reduce behind a kernel that spins. The call returns, the wait ends at the limit: what it says is the error.
cadre_result reduce_behind(cadre_call *call, cadre_comm *comm, cudaStream_t stream)
{
    float *to = nullptr;
    cudaError_t error = cudaMalloc(&to, sizeof *to);
    if (error != cudaSuccess)
        return failed(call, "memory", error);
    spin_kernel<<<1, 1, 0, stream>>>();
    error = cudaGetLastError();
    cadre_result r = error == cudaSuccess ? CADRE_OK : failed(call, "a kernel", error);
    if (r == CADRE_OK && (r = cadre_all_reduce(comm, "F32", to, to, 1, CADRE_SUM)) != CADRE_OK)
        cadre_fail(call, "the call: %s", cadre_comm_error(comm));
    if (r == CADRE_OK && (r = cadre_comm_wait(comm)) != CADRE_OK)
        cadre_fail(call, "%s", cadre_comm_error(comm));
    cudaFree(to); // waits for the kernel
    return r == CADRE_OK ? cadre_return_double(call, 0) : r;
}

cadre_result hang(void *, cadre_call *call)
{
    cadre_comm_options options;
    cadre_comm *comm;
    cudaStream_t stream;
    cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess)
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
    cudaStreamDestroy(stream);
    return r;
}

const cadre_method methods[] = {
    {"take_all", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, take_all, "asks for more memory than the GPU has"},
    {"get_one", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, get_one, "returns 1, by a kernel"},
    {"stray", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, stray, "writes to an illegal address"},
    {"reduce", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, reduce, "returns the sum of rank + 1 over all ranks, by NCCL"},
    {"hang", CADRE_ONE_TO_ALL, CADRE_EXECUTE_ALL, hang, "an all_reduce on a stream that stands still"},
};

const cadre_class classes[] = {
    {"Trouble", create, destroy, methods, sizeof methods / sizeof *methods},
};

const cadre_module_info info = {CADRE_ABI, "trouble", classes, sizeof classes / sizeof *classes};

} // namespace

const cadre_module_info *cadre_module(void)
{
    return &info;
}
