// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 as far as worker/device uses it, over fake_device.h. The file `control` in the folder GPU_STAND_IN
// raises what a real driver will not on demand, in all processes; it may change at any time:
//
//   gpus N          so many GPUs; 1 by default, -1 = none
//   one-gpu         all processes have the same one
//   memory N        bytes that a process can have of the GPU
//   init CODE       cuInit() fails with this; the same with alloc, pin, export and import
//   stream CODE     cuStreamQuery() reports this
//   copy CODE       the next copy fails with this, and from then on the context of that process does
//   hang            nothing on a stream is ever done
//   exit-waits      the exit handlers of the driver wait while this line is there
//   lag N           what is put on a stream begins N microseconds later
//
// Each import adds a line to the file `imports`. CUDA_STAND_IN_GPU is the number of the GPU of a process, which each
// has one of its own without it.
#include "tests/unit/worker/device/fake_device.h"

#include "common/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID_VALUE = 1, NO_MEMORY = 2, NO_DEVICE = 100, INVALID_CONTEXT = 201, INVALID_HANDLE = 400 };
enum { NOT_READY = 600, ILLEGAL_ADDRESS = 700, PATH_SIZE = 512 };

struct event {
    uint64_t recorded, reached; // numbers of the last one on a stream, and of the last one that came
    bool destroyed;             // before it came
};

static size_t used_bytes;
static _Thread_local int depth;
static _Thread_local bool chosen; // a context, by cuCtxSetCurrent()

int stand_in_depth(void)
{
    return depth;
}

#define OFFERED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

static __attribute__((destructor)) void end(void)
{
    while (stand_in_control("exit-waits"))
        usleep(1000);
}

// The device and its context

OFFERED int cuInit(unsigned flags)
{
    int code = stand_in_control("init");
    return code ? code : stand_in_control("gpus") < 0 ? NO_DEVICE : (int)flags;
}

OFFERED int cuDriverGetVersion(int *ret)
{
    *ret = stand_in_control("version");
    return OK;
}

OFFERED int cuDeviceGetCount(int *n)
{
    int gpus = stand_in_control("gpus");
    *n = gpus ? MAX(gpus, 0) : 1;
    return OK;
}

OFFERED int cuDeviceGet(int *ret, int ordinal)
{
    *ret = ordinal;
    return OK;
}

OFFERED int cuDeviceGetUuid_v2(unsigned char *ret, int device)
{
    const char *own = getenv("CUDA_STAND_IN_GPU");
    int number = stand_in_control("one-gpu") ? 0 : own ? (int)strtol(own, NULL, 10) : (int)getpid();
    memset(ret, 0, 16);
    memcpy(ret, &number, sizeof number);
    ret[15] = (unsigned char)device;
    return OK;
}

OFFERED int cuDevicePrimaryCtxRetain(void **ret, int device)
{
    *ret = (void *)(uintptr_t)(device + 1);
    return OK;
}

OFFERED int cuDevicePrimaryCtxRelease_v2(int device)
{
    (void)device;
    return OK;
}

OFFERED int cuCtxGetCurrent(void **ret)
{
    *ret = depth || chosen ? (void *)(uintptr_t)1 : NULL;
    return OK;
}

OFFERED int cuCtxSetCurrent(void *context)
{
    chosen = context != NULL;
    return OK;
}

OFFERED int cuCtxGetDevice(int *ret)
{
    *ret = 0;
    return OK;
}

OFFERED int cuCtxPushCurrent_v2(void *context)
{
    depth += context != NULL;
    return OK;
}

OFFERED int cuCtxPopCurrent_v2(void **ret)
{
    *ret = NULL;
    return --depth < 0 ? INVALID_CONTEXT : OK;
}

OFFERED int cuGetErrorName(int code, const char **ret)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
                 {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
                 {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (names[i].code == code) {
            *ret = names[i].name;
            return OK;
        }
    return INVALID_VALUE;
}

// With the lock: why a call fails, 0 = it does not. A real driver wants a context for all of these.
static int refusal(const char *word)
{
    if (depth < 1 && !chosen)
        abort(); // a test of worker/device has found something
    return fake_broken() ? fake_broken() : word ? stand_in_control(word) : OK;
}

OFFERED int cuMemGetInfo_v2(size_t *left, size_t *total)
{
    fake_lock();
    *total = (size_t)stand_in_control("memory");
    *left = *total - used_bytes;
    return fake_unlock(OK);
}

OFFERED int cuMemAlloc_v2(uint64_t *ret, size_t size)
{
    static unsigned count;
    fake_lock();
    size_t most = (size_t)stand_in_control("memory");
    int code = refusal("alloc");
    if (code == OK && most && used_bytes + size > most)
        code = NO_MEMORY;
    if (code != OK)
        return fake_unlock(code);
    struct memory *m = fake_memory_new(size);
    snprintf(m->file, sizeof m->file, "memory.%d.%u", (int)getpid(), ++count);
    if (!fake_map(m, true))
        abort();
    memset(m->view, 0xa5, size); // nobody may count on zeros
    used_bytes += size;
    *ret = (uintptr_t)m->address;
    return fake_unlock(OK);
}

// It waits for all that the device has to do, as a real one does.
OFFERED int cuMemFree_v2(uint64_t memory)
{
    fake_lock();
    int code = refusal(NULL);
    if (code == OK)
        fake_wait_idle(NULL);
    struct memory *m = fake_find((void *)(uintptr_t)memory);
    if (!m || m->address != (char *)(uintptr_t)memory || m->imported || !m->file[0])
        abort(); // a test of worker/device has found something
    used_bytes -= m->len;
    fake_forget(m);
    return fake_unlock(code);
}

OFFERED int cuMemHostAlloc(void **ret, size_t size, unsigned flags)
{
    (void)flags;
    fake_lock();
    int code = refusal("pin");
    if (code != OK)
        return fake_unlock(code);
    struct memory *m = fake_memory_new(size);
    fake_map_pinned(m);
    *ret = m->address;
    return fake_unlock(OK);
}

OFFERED int cuMemFreeHost(void *memory)
{
    fake_lock();
    struct memory *m = fake_find(memory);
    if (!m || m->address != memory || m->file[0])
        abort();
    fake_forget(m);
    return fake_unlock(OK);
}

// Streams and events

OFFERED int cuStreamCreate(void **ret, unsigned flags)
{
    fake_lock();
    int code = flags > 1 ? INVALID_VALUE : refusal(NULL);
    *ret = code == OK ? fake_stream_new(flags == 1) : NULL; // CU_STREAM_NON_BLOCKING
    return fake_unlock(code);
}

OFFERED int cuStreamDestroy_v2(void *stream)
{
    fake_lock();
    fake_stream_free(stream);
    return fake_unlock(OK);
}

OFFERED int cuStreamQuery(void *stream)
{
    fake_lock();
    int code = refusal("stream");
    return fake_unlock(code != OK ? code : fake_idle(stream) ? OK : NOT_READY);
}

static bool run_copy(void *ctx)
{
    const struct op *op = ctx;
    int code = stand_in_control("copy");
    if (code)
        fake_break(code);
    else
        memmove(stand_in_memory(op->to), stand_in_memory(op->from), op->len);
    return true;
}

static bool is_inside(const void *at, size_t len)
{
    const struct memory *m = fake_find(at);
    return m && (const char *)at + len <= m->address + m->len;
}

// With memory that is not pinned, it returns when it is done.
OFFERED int cuMemcpyAsync(uint64_t to, uint64_t from, size_t len, void *stream)
{
    struct op op = {.turn = run_copy, .to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from, .len = len};
    fake_lock();
    int code = refusal(NULL);
    bool knows_to = fake_find(op.to), knows_from = fake_find(op.from);
    if ((knows_to && !is_inside(op.to, len)) || (knows_from && !is_inside(op.from, len)) || !(knows_to || knows_from))
        code = code != OK ? code : INVALID_VALUE;
    if (code == OK)
        (void)fake_put(stream, op);
    if (code == OK && !(knows_to && knows_from))
        fake_wait_idle(stream);
    return fake_unlock(code);
}

// The same, waited for: what the benchmark compares with.

static int copy_now(uint64_t to, uint64_t from, size_t len)
{
    int code = cuMemcpyAsync(to, from, len, NULL);
    fake_lock();
    if (code == OK)
        fake_wait_idle(NULL);
    return fake_unlock(code);
}

OFFERED int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len)
{
    return copy_now(to, (uintptr_t)from, len);
}

OFFERED int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len)
{
    return copy_now((uintptr_t)to, from, len);
}

OFFERED int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t len)
{
    return copy_now(to, from, len);
}

OFFERED int cuEventCreate(void **ret, unsigned flags)
{
    (void)flags;
    *ret = calloc(1, sizeof(struct event));
    return OK;
}

OFFERED int cuEventDestroy_v2(void *event)
{
    struct event *e = event;
    fake_lock();
    e->destroyed = e->reached < e->recorded;
    if (!e->destroyed)
        free(e);
    return fake_unlock(OK);
}

static bool reach(void *ctx)
{
    const struct op *op = ctx;
    struct event *e = op->to;
    e->reached = op->number;
    if (e->destroyed && e->reached == e->recorded)
        free(e);
    return true;
}

OFFERED int cuEventRecord(void *event, void *stream)
{
    fake_lock();
    int code = refusal(NULL);
    if (code == OK)
        ((struct event *)event)->recorded = fake_put(stream, (struct op){.turn = reach, .to = event});
    return fake_unlock(code);
}

static bool await(void *ctx)
{
    const struct op *op = ctx;
    return ((const struct event *)op->to)->reached >= op->len; // len: the number when it was asked for
}

OFFERED int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    fake_lock();
    int code = refusal(NULL);
    if (code == OK)
        (void)fake_put(stream, (struct op){.turn = await, .to = event, .len = ((struct event *)event)->recorded});
    return fake_unlock(code);
}

OFFERED int cuEventQuery(void *event)
{
    const struct event *e = event;
    fake_lock();
    int code = refusal(NULL);
    return fake_unlock(code != OK ? code : e->reached >= e->recorded ? OK : NOT_READY);
}

// Other processes

struct handle {
    char file[48];
    uint64_t len;
    int pid, unused;
};

_Static_assert(sizeof(struct handle) == 64, "as the driver's");

OFFERED int cuMemGetAddressRange_v2(uint64_t *base, size_t *size, uint64_t memory)
{
    fake_lock();
    int code = refusal(NULL);
    const struct memory *m = fake_find((void *)(uintptr_t)memory);
    if (code == OK && !m)
        code = INVALID_VALUE;
    if (code == OK) {
        *base = (uintptr_t)m->address;
        *size = m->len;
    }
    return fake_unlock(code);
}

OFFERED int cuIpcGetMemHandle(struct handle *ret, uint64_t memory)
{
    fake_lock();
    int code = refusal("export");
    const struct memory *m = fake_find((void *)(uintptr_t)memory);
    if (code == OK && (!m || !m->file[0] || m->imported))
        code = INVALID_VALUE;
    if (code == OK) {
        *ret = (struct handle){.len = m->len, .pid = (int)getpid()};
        memcpy(ret->file, m->file, sizeof ret->file);
    }
    return fake_unlock(code);
}

static void note_import(void)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/imports", fake_folder());
    FILE *f = fopen(path, "ae");
    if (f) {
        fprintf(f, "%d\n", (int)getpid());
        fclose(f);
    }
}

OFFERED int cuIpcOpenMemHandle_v2(uint64_t *ret, struct handle handle, unsigned flags)
{
    (void)flags;
    fake_lock();
    int code = refusal("import");
    if (code == OK && handle.pid == (int)getpid())
        code = INVALID_CONTEXT;
    if (code != OK)
        return fake_unlock(code);
    struct memory *m = fake_memory_new((size_t)handle.len);
    m->imported = true;
    memcpy(m->file, handle.file, sizeof m->file);
    if (!fake_map(m, false)) {
        *m = (struct memory){NULL};
        return fake_unlock(INVALID_HANDLE);
    }
    *ret = (uintptr_t)m->address;
    note_import();
    return fake_unlock(OK);
}

OFFERED int cuIpcCloseMemHandle(uint64_t memory)
{
    fake_lock();
    struct memory *m = fake_find((void *)(uintptr_t)memory);
    if (!m || m->address != (char *)(uintptr_t)memory || !m->imported)
        abort();
    fake_forget(m);
    return fake_unlock(OK);
}
