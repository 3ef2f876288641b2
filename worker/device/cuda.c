// SPDX-License-Identifier: Apache-2.0
#include "worker/device/cuda.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

// As the driver's interface has them, which never changes for a function of a given name.
enum {
    CUDA_OK = 0,
    CUDA_NO_MEMORY = 2,
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_READY = 600,
    CUDA_DRIVER_MISMATCH = 803,
    HANDLE_SIZE = 64,
    PORTABLE = 1,
    NON_BLOCKING = 1,
    NO_TIMING = 2,
    LAZY_PEER_ACCESS = 1,
};

typedef struct {
    unsigned char bytes[DEVICE_UUID_SIZE];
} uuid_bytes;

typedef struct {
    char bytes[HANDLE_SIZE];
} ipc_handle;

struct library {
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*device)(int *ret, int ordinal);
    int (*uuid)(uuid_bytes *ret, int device);
    int (*retain)(void **ret, int device);
    int (*release)(int device);
    int (*current)(void **ret);
    int (*current_device)(int *ret);
    int (*push)(void *context);
    int (*pop)(void **ret);
    int (*memory_info)(size_t *free, size_t *total);
    int (*alloc)(uint64_t *ret, size_t size);
    int (*free)(uint64_t memory);
    int (*pin)(void **ret, size_t size, unsigned flags);
    int (*unpin)(void *memory);
    int (*stream_new)(void **ret, unsigned flags);
    int (*stream_free)(void *stream);
    int (*stream_query)(void *stream);
    int (*stream_await)(void *stream, void *event, unsigned flags);
    int (*copy)(uint64_t to, uint64_t from, size_t len, void *stream);
    int (*event_new)(void **ret, unsigned flags);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*range)(uint64_t *base, size_t *size, uint64_t memory);
    int (*export)(ipc_handle *ret, uint64_t memory);
    int (*import)(uint64_t *ret, ipc_handle handle, unsigned flags);
    int (*unimport)(uint64_t memory);
    int (*error_name)(int code, const char **ret);
};

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"cuInit", offsetof(struct library, init)},
    {"cuDeviceGetCount", offsetof(struct library, count)},
    {"cuDeviceGet", offsetof(struct library, device)},
    {"cuDeviceGetUuid_v2", offsetof(struct library, uuid)},
    {"cuDevicePrimaryCtxRetain", offsetof(struct library, retain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(struct library, release)},
    {"cuCtxGetCurrent", offsetof(struct library, current)},
    {"cuCtxGetDevice", offsetof(struct library, current_device)},
    {"cuCtxPushCurrent_v2", offsetof(struct library, push)},
    {"cuCtxPopCurrent_v2", offsetof(struct library, pop)},
    {"cuMemGetInfo_v2", offsetof(struct library, memory_info)},
    {"cuMemAlloc_v2", offsetof(struct library, alloc)},
    {"cuMemFree_v2", offsetof(struct library, free)},
    {"cuMemHostAlloc", offsetof(struct library, pin)},
    {"cuMemFreeHost", offsetof(struct library, unpin)},
    {"cuStreamCreate", offsetof(struct library, stream_new)},
    {"cuStreamDestroy_v2", offsetof(struct library, stream_free)},
    {"cuStreamQuery", offsetof(struct library, stream_query)},
    {"cuStreamWaitEvent", offsetof(struct library, stream_await)},
    {"cuMemcpyAsync", offsetof(struct library, copy)},
    {"cuEventCreate", offsetof(struct library, event_new)},
    {"cuEventDestroy_v2", offsetof(struct library, event_free)},
    {"cuEventRecord", offsetof(struct library, event_record)},
    {"cuEventQuery", offsetof(struct library, event_query)},
    {"cuMemGetAddressRange_v2", offsetof(struct library, range)},
    {"cuIpcGetMemHandle", offsetof(struct library, export)},
    {"cuIpcOpenMemHandle_v2", offsetof(struct library, import)},
    {"cuIpcCloseMemHandle", offsetof(struct library, unimport)},
    {"cuGetErrorName", offsetof(struct library, error_name)},
};

struct cuda {
    struct device device; // first
    const struct library *f;
    int number;
    bool retained; // the context is the device's own, which we keep
    void *context;
};

static struct cuda *cuda_of(struct device *d)
{
    return CONTAINER_OF(d, struct cuda, device);
}

// The driver

static int find_symbols(void *object, struct library *ret, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *p = dlsym(object, symbols[i].name);
        if (!p)
            return err_set(err, ERR_INVALID, "NVIDIA's " LIBRARY " has no %s: its driver is too old: update the node's",
                           symbols[i].name);
        memcpy((char *)ret + symbols[i].offset, &p, sizeof p);
    }
    return 0;
}

// Once a process. It stays loaded: its threads may run as long as the process does. `only_loaded`: not unless somebody
// else has loaded it.
static const struct library *driver(bool only_loaded, struct err *err)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct library library;
    static bool known;
    pthread_mutex_lock(&mutex);
    if (!known) {
        void *object = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | (only_loaded ? RTLD_NOLOAD : 0));
        if (!object)
            err_set(err, ERR_INVALID,
                    "there is no NVIDIA driver here: %s: was this worker given a GPU, and has its node the driver?",
                    dlerror());
        else
            known = find_symbols(object, &library, err) == 0;
    }
    bool found = known;
    pthread_mutex_unlock(&mutex);
    return found ? &library : NULL;
}

// The context has failed for good: what CUDA calls a sticky error.
static bool is_final(int code)
{
    static const int codes[] = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i] == code)
            return true;
    return false;
}

static const char *name_of(const struct library *f, int code)
{
    const char *name = NULL;
    return f->error_name(code, &name) == CUDA_OK && name ? name : "an unknown error";
}

static int fail(const struct library *f, const char *what, int code, struct err *err)
{
    int kind = code == CUDA_NO_MEMORY ? ERR_NOMEM : is_final(code) ? ERR_GONE : ERR_IO;
    return err_set(err, kind, "the GPU: %s: %s (%d)", what, name_of(f, code), code);
}

static int check(const struct library *f, const char *what, int code, struct err *err)
{
    return code == CUDA_OK ? 0 : fail(f, what, code, err);
}

// Opening

static int init(const struct library *f, struct err *err)
{
    int code = f->init(0);
    if (code == CUDA_NO_DEVICE)
        return err_set(err, ERR_INVALID, "NVIDIA's driver sees no GPU here: was this worker given one?");
    if (code == CUDA_DRIVER_MISMATCH)
        return err_set(err, ERR_INVALID,
                       "NVIDIA's " LIBRARY " and the driver in the kernel have different versions: the node needs a "
                       "restart after a driver update, or the image brings a library of its own");
    return check(f, "starting the driver", code, err);
}

// Of the thread that calls, where its program has chosen one.
static int take_current(struct cuda *c, struct err *err)
{
    int r = check(c->f, "its context", c->f->current(&c->context), err);
    if (r == 0 && c->context)
        r = check(c->f, "its device", c->f->current_device(&c->number), err);
    return r;
}

static int take_own(struct cuda *c, struct err *err)
{
    const char *text = getenv("CADRE_DEVICE");
    int64_t ordinal = 0;
    int n = 0;
    if (text && !str_to_i64(text, &ordinal))
        return err_set(err, ERR_INVALID, "CADRE_DEVICE is %.20s, which is not the number of a GPU", text);
    int r = check(c->f, "counting", c->f->count(&n), err);
    if (r == 0 && (ordinal < 0 || ordinal >= n))
        r = err_set(err, ERR_INVALID, "this rank has no GPU: CADRE_DEVICE is %s, and it sees %d",
                    text ? text : "not set", n);
    if (r == 0)
        r = check(c->f, "its device", c->f->device(&c->number, (int)ordinal), err);
    if (r == 0)
        r = check(c->f, "its context", c->f->retain(&c->context, c->number), err);
    c->retained = r == 0;
    return r;
}

static int take_uuid(struct cuda *c, struct err *err)
{
    uuid_bytes uuid;
    int r = check(c->f, "its UUID", c->f->uuid(&uuid, c->number), err);
    if (r == 0)
        memcpy(c->device.uuid, uuid.bytes, sizeof uuid.bytes);
    return r;
}

int cuda_check_thread(struct err *err)
{
    struct err ignored = ERR_INIT;
    void *context = NULL;
    const struct library *f = driver(true, &ignored);
    if (!f || f->current(&context) != CUDA_OK || !context)
        return 0;
    int code = f->stream_query(NULL);
    return is_final(code) ? fail(f, "it is lost to this process", code, err) : 0;
}

static void close_gpu(struct device *d)
{
    struct cuda *c = cuda_of(d);
    if (c->retained)
        (void)c->f->release(c->number);
    free(c);
}

static int enter(struct device *d, struct err *err)
{
    struct cuda *c = cuda_of(d);
    return check(c->f, "its context", c->f->push(c->context), err);
}

static void leave(struct device *d)
{
    void *ignored;
    (void)cuda_of(d)->f->pop(&ignored);
}

// Memory

static int alloc(struct device *d, size_t size, void **ret, struct err *err)
{
    const struct library *f = cuda_of(d)->f;
    uint64_t at = 0;
    size_t left = 0, total = 0;
    int code = f->alloc(&at, MAX(size, (size_t)1));
    *ret = (void *)(uintptr_t)at;
    if (code != CUDA_NO_MEMORY)
        return check(f, "memory", code, err);
    (void)f->memory_info(&left, &total);
    return err_set(err, ERR_NOMEM, "the GPU has no room for %zu bytes: %zu of its %zu bytes are free: %s (%d)", size,
                   left, total, name_of(f, code), code);
}

static void release(struct device *d, void *memory)
{
    (void)cuda_of(d)->f->free((uintptr_t)memory);
}

static int pin(struct device *d, size_t size, void **ret, struct err *err)
{
    const struct library *f = cuda_of(d)->f;
    return check(f, "pinned memory of the host", f->pin(ret, MAX(size, (size_t)1), PORTABLE), err);
}

static void unpin(struct device *d, void *memory)
{
    (void)cuda_of(d)->f->unpin(memory);
}

// Streams and events

static int stream_new(struct device *d, bool apart, void **ret, struct err *err)
{
    const struct library *f = cuda_of(d)->f;
    return check(f, "a stream", f->stream_new(ret, apart ? NON_BLOCKING : 0), err);
}

static void stream_free(struct device *d, void *stream)
{
    (void)cuda_of(d)->f->stream_free(stream);
}

static int polled(const struct library *f, const char *what, int code, struct err *err)
{
    if (code == CUDA_NOT_READY)
        return 0;
    return code == CUDA_OK ? 1 : fail(f, what, code, err);
}

static int stream_poll(struct device *d, void *stream, struct err *err)
{
    return polled(cuda_of(d)->f, "its stream", cuda_of(d)->f->stream_query(stream), err);
}

static int copy(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err)
{
    const struct library *f = cuda_of(d)->f;
    return check(f, "a copy", f->copy((uintptr_t)to, (uintptr_t)from, len, stream), err);
}

static int event_new(struct device *d, void **ret, struct err *err)
{
    return check(cuda_of(d)->f, "an event", cuda_of(d)->f->event_new(ret, NO_TIMING), err);
}

static void event_free(struct device *d, void *event)
{
    (void)cuda_of(d)->f->event_free(event);
}

static int event_record(struct device *d, void *event, void *stream, struct err *err)
{
    return check(cuda_of(d)->f, "an event", cuda_of(d)->f->event_record(event, stream), err);
}

static int event_poll(struct device *d, void *event, struct err *err)
{
    return polled(cuda_of(d)->f, "its stream", cuda_of(d)->f->event_query(event), err);
}

static int event_await(struct device *d, void *event, void *stream, struct err *err)
{
    return check(cuda_of(d)->f, "an event", cuda_of(d)->f->stream_await(stream, event, 0), err);
}

// Other processes

_Static_assert(DEVICE_HANDLE_SIZE == HANDLE_SIZE + sizeof(uint64_t), "a handle, and the offset in its allocation");

static int export(struct device *d, const void *memory, struct device_handle *ret, struct err *err)
{
    const struct library *f = cuda_of(d)->f;
    uint64_t base = 0, at = (uintptr_t)memory;
    size_t size = 0;
    ipc_handle handle;
    int r = check(f, "finding its memory", f->range(&base, &size, at), err);
    if (r < 0)
        return r;
    int code = f->export(&handle, base);
    if (code != CUDA_OK && !is_final(code))
        return err_set(err, ERR_INVALID, "the GPU: a handle of its memory: %s (%d)", name_of(f, code), code);
    at -= base;
    memcpy(ret->bytes, handle.bytes, HANDLE_SIZE);
    memcpy(ret->bytes + HANDLE_SIZE, &at, sizeof at);
    return check(f, "a handle of its memory", code, err);
}

static int import(struct device *d, const struct device_handle *from, struct device_mapping *ret, struct err *err)
{
    const struct library *f = cuda_of(d)->f;
    uint64_t base = 0, at;
    ipc_handle handle;
    memcpy(handle.bytes, from->bytes, HANDLE_SIZE);
    memcpy(&at, from->bytes + HANDLE_SIZE, sizeof at);
    *ret = (struct device_mapping){NULL};
    int code = f->import(&base, handle, LAZY_PEER_ACCESS);
    if (code != CUDA_OK && code != CUDA_NO_MEMORY && !is_final(code))
        return err_set(err, ERR_INVALID, "the GPU: memory of another process: %s (%d)", name_of(f, code), code);
    if (code == CUDA_OK)
        *ret = (struct device_mapping){(void *)(uintptr_t)(base + at), (void *)(uintptr_t)base};
    return check(f, "memory of another process", code, err);
}

static void unimport(struct device *d, const struct device_mapping *m)
{
    (void)cuda_of(d)->f->unimport((uintptr_t)m->base);
}

static const struct device_backend backend = {
    .close = close_gpu,
    .enter = enter,
    .leave = leave,
    .alloc = alloc,
    .free = release,
    .pin = pin,
    .unpin = unpin,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_poll = stream_poll,
    .copy = copy,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_poll = event_poll,
    .event_await = event_await,
    .export = export,
    .import = import,
    .unimport = unimport,
};

int cuda_open(struct device **ret, struct err *err)
{
    struct cuda *c = xcalloc(1, sizeof *c);
    c->device = (struct device){.backend = &backend, .is_gpu = true};
    c->f = driver(false, err);
    int r = c->f ? init(c->f, err) : err->code;
    if (r == 0)
        r = take_current(c, err);
    if (r == 0 && !c->context)
        r = take_own(c, err);
    if (r == 0)
        r = take_uuid(c, err);
    *ret = r == 0 ? &c->device : NULL;
    if (r < 0)
        close_gpu(&c->device);
    return r;
}
