// SPDX-License-Identifier: Apache-2.0
#include "worker/device/device.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/device/symbols.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libcuda.so.1"

enum { SPINS = 2000, PAUSE_NS = 20 * 1000 }; // a small copy is done before a sleep would end

// From the interface of the driver, which never changes for a function of a given name.
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

struct driver {
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

static const struct symbol symbols[] = {
    {"cuInit", offsetof(struct driver, init)},
    {"cuDeviceGetCount", offsetof(struct driver, count)},
    {"cuDeviceGet", offsetof(struct driver, device)},
    {"cuDeviceGetUuid_v2", offsetof(struct driver, uuid)},
    {"cuDevicePrimaryCtxRetain", offsetof(struct driver, retain)},
    {"cuDevicePrimaryCtxRelease_v2", offsetof(struct driver, release)},
    {"cuCtxGetCurrent", offsetof(struct driver, current)},
    {"cuCtxGetDevice", offsetof(struct driver, current_device)},
    {"cuCtxPushCurrent_v2", offsetof(struct driver, push)},
    {"cuCtxPopCurrent_v2", offsetof(struct driver, pop)},
    {"cuMemGetInfo_v2", offsetof(struct driver, memory_info)},
    {"cuMemAlloc_v2", offsetof(struct driver, alloc)},
    {"cuMemFree_v2", offsetof(struct driver, free)},
    {"cuMemHostAlloc", offsetof(struct driver, pin)},
    {"cuMemFreeHost", offsetof(struct driver, unpin)},
    {"cuStreamCreate", offsetof(struct driver, stream_new)},
    {"cuStreamDestroy_v2", offsetof(struct driver, stream_free)},
    {"cuStreamQuery", offsetof(struct driver, stream_query)},
    {"cuStreamWaitEvent", offsetof(struct driver, stream_await)},
    {"cuMemcpyAsync", offsetof(struct driver, copy)},
    {"cuEventCreate", offsetof(struct driver, event_new)},
    {"cuEventDestroy_v2", offsetof(struct driver, event_free)},
    {"cuEventRecord", offsetof(struct driver, event_record)},
    {"cuEventQuery", offsetof(struct driver, event_query)},
    {"cuMemGetAddressRange_v2", offsetof(struct driver, range)},
    {"cuIpcGetMemHandle", offsetof(struct driver, export)},
    {"cuIpcOpenMemHandle_v2", offsetof(struct driver, import)},
    {"cuIpcCloseMemHandle", offsetof(struct driver, unimport)},
    {"cuGetErrorName", offsetof(struct driver, error_name)},
};

struct device {
    const struct driver *f;
    int number;
    bool retained; // the primary context of the device, which this process keeps
    void *context;
    unsigned char uuid[DEVICE_UUID_SIZE];
};

// The driver

static int find_symbols(void *object, struct driver *ret, struct err *err)
{
    const char *missing = symbols_find(object, symbols, ARRAY_LEN(symbols), ret);
    return missing ? err_set(err, ERR_INVALID,
                             "NVIDIA's " LIBRARY " has no %s: its driver is too old: update the node's", missing)
                   : 0;
}

// Loads the driver once in a process. It stays loaded, because its threads may run until the process ends.
// `only_loaded`: only finds a driver that is loaded already.
static const struct driver *driver(bool only_loaded, struct err *err)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct driver library;
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

// True if the context has failed for good. CUDA calls this a sticky error.
static bool is_final(int code)
{
    static const int codes[] = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i] == code)
            return true;
    return false;
}

static const char *name_of(const struct driver *f, int code)
{
    const char *name = NULL;
    return f->error_name(code, &name) == CUDA_OK && name ? name : "an unknown error";
}

static int fail(const struct driver *f, const char *what, int code, struct err *err)
{
    int kind = code == CUDA_NO_MEMORY ? ERR_NOMEM : is_final(code) ? ERR_GONE : ERR_IO;
    return err_set(err, kind, "the GPU: %s: %s (%d)", what, name_of(f, code), code);
}

static int check(const struct driver *f, const char *what, int code, struct err *err)
{
    return code == CUDA_OK ? 0 : fail(f, what, code, err);
}

// Opening

static int init(const struct driver *f, struct err *err)
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

// Takes the context of the calling thread, if its program has chosen one.
static int take_current(struct device *d, struct err *err)
{
    int r = check(d->f, "its context", d->f->current(&d->context), err);
    if (r == 0 && d->context)
        r = check(d->f, "its device", d->f->current_device(&d->number), err);
    return r;
}

static int take_own(struct device *d, struct err *err)
{
    const char *text = getenv("CADRE_DEVICE");
    int64_t ordinal = 0;
    int n = 0;
    if (text && !str_to_i64(text, &ordinal))
        return err_set(err, ERR_INVALID, "CADRE_DEVICE is %.20s, which is not the number of a GPU", text);
    int r = check(d->f, "counting", d->f->count(&n), err);
    if (r == 0 && (ordinal < 0 || ordinal >= n))
        r = err_set(err, ERR_INVALID, "this rank has no GPU: CADRE_DEVICE is %s, and it sees %d",
                    text ? text : "not set", n);
    if (r == 0)
        r = check(d->f, "its device", d->f->device(&d->number, (int)ordinal), err);
    if (r == 0)
        r = check(d->f, "its context", d->f->retain(&d->context, d->number), err);
    d->retained = r == 0;
    return r;
}

static int take_uuid(struct device *d, struct err *err)
{
    uuid_bytes uuid;
    int r = check(d->f, "its UUID", d->f->uuid(&uuid, d->number), err);
    if (r == 0)
        memcpy(d->uuid, uuid.bytes, sizeof uuid.bytes);
    return r;
}

int device_open(struct device **ret, struct err *err)
{
    struct device *d = xcalloc(1, sizeof *d);
    d->f = driver(false, err);
    int r = d->f ? init(d->f, err) : err->code;
    if (r == 0)
        r = take_current(d, err);
    if (r == 0 && !d->context)
        r = take_own(d, err);
    if (r == 0)
        r = take_uuid(d, err);
    if (r < 0)
        device_close(TAKE_PTR(d));
    *ret = d;
    return r;
}

int device_check_thread(struct err *err)
{
    struct err ignored = ERR_INIT;
    void *context = NULL;
    const struct driver *f = driver(true, &ignored);
    if (!f || f->current(&context) != CUDA_OK || !context)
        return 0;
    int code = f->stream_query(NULL);
    return is_final(code) ? fail(f, "it is lost to this process", code, err) : 0;
}

void device_close(struct device *d)
{
    if (!d)
        return;
    if (d->retained)
        (void)d->f->release(d->number);
    free(d);
}

const unsigned char *device_uuid(const struct device *d)
{
    return d->uuid;
}

void device_uuid_text(const unsigned char uuid[DEVICE_UUID_SIZE], char ret[DEVICE_UUID_TEXT])
{
    size_t n = (size_t)snprintf(ret, DEVICE_UUID_TEXT, "GPU-");
    for (int i = 0; i < DEVICE_UUID_SIZE; i++)
        n += (size_t)snprintf(ret + n, DEVICE_UUID_TEXT - n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              uuid[i]);
}

int device_enter(struct device *d, struct err *err)
{
    return check(d->f, "its context", d->f->push(d->context), err);
}

void device_leave(struct device *d)
{
    void *ignored;
    (void)d->f->pop(&ignored);
}

// Memory

int device_alloc(struct device *d, size_t size, void **ret, struct err *err)
{
    const struct driver *f = d->f;
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

void device_free(struct device *d, void *memory)
{
    if (memory)
        (void)d->f->free((uintptr_t)memory);
}

int device_pin(struct device *d, size_t size, void **ret, struct err *err)
{
    const struct driver *f = d->f;
    return check(f, "pinned memory of the host", f->pin(ret, MAX(size, (size_t)1), PORTABLE), err);
}

void device_unpin(struct device *d, void *memory)
{
    if (memory)
        (void)d->f->unpin(memory);
}

// Streams and events

static int stream_new(struct device *d, bool apart, void **ret, struct err *err)
{
    const struct driver *f = d->f;
    return check(f, "a stream", f->stream_new(ret, apart ? NON_BLOCKING : 0), err);
}

int device_stream_new(struct device *d, void **ret, struct err *err)
{
    return stream_new(d, false, ret, err);
}

int device_stream_new_apart(struct device *d, void **ret, struct err *err)
{
    return stream_new(d, true, ret, err);
}

void device_stream_free(struct device *d, void *stream)
{
    if (stream)
        (void)d->f->stream_free(stream);
}

static int polled(const struct driver *f, const char *what, int code, struct err *err)
{
    if (code == CUDA_NOT_READY)
        return 0;
    return code == CUDA_OK ? 1 : fail(f, what, code, err);
}

int device_stream_poll(struct device *d, void *stream, struct err *err)
{
    return polled(d->f, "its stream", d->f->stream_query(stream), err);
}

typedef int (*poll_fn)(struct device *d, void *what, struct err *err);

static int wait_for(struct device *d, poll_fn poll, void *what, int64_t limit_ms, const atomic_bool *canceled,
                    struct err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int64_t begun = clock_mono_ms(&clock_system);
    int done;
    for (unsigned spins = 0; (done = poll(d, what, err)) == 0; spins++) {
        if (canceled && atomic_load(canceled))
            return err_set(err, ERR_CANCELED, "canceled while the device worked");
        if (clock_mono_ms(&clock_system) - begun > limit_ms)
            return err_set(err, ERR_TIMEOUT,
                           "the GPU was not done within %" PRId64 " ms: a kernel on it may never end, or it hangs: "
                           "'kubectl cadre stack' shows what the rank runs, nvidia-smi what the GPU does",
                           limit_ms);
        if (spins > SPINS)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return MIN(done, 0);
}

int device_stream_wait(struct device *d, void *stream, int64_t limit_ms, const atomic_bool *canceled, struct err *err)
{
    return wait_for(d, device_stream_poll, stream, limit_ms, canceled, err);
}

int device_copy(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err)
{
    const struct driver *f = d->f;
    return len ? check(f, "a copy", f->copy((uintptr_t)to, (uintptr_t)from, len, stream), err) : 0;
}

int device_event_new(struct device *d, void **ret, struct err *err)
{
    return check(d->f, "an event", d->f->event_new(ret, NO_TIMING), err);
}

void device_event_free(struct device *d, void *event)
{
    if (event)
        (void)d->f->event_free(event);
}

int device_event_record(struct device *d, void *event, void *stream, struct err *err)
{
    return check(d->f, "an event", d->f->event_record(event, stream), err);
}

int device_event_poll(struct device *d, void *event, struct err *err)
{
    return polled(d->f, "its stream", d->f->event_query(event), err);
}

int device_event_wait(struct device *d, void *event, int64_t limit_ms, const atomic_bool *canceled, struct err *err)
{
    return wait_for(d, device_event_poll, event, limit_ms, canceled, err);
}

int device_event_await(struct device *d, void *event, void *stream, struct err *err)
{
    return check(d->f, "an event", d->f->stream_await(stream, event, 0), err);
}

// Other processes

_Static_assert(DEVICE_HANDLE_SIZE == HANDLE_SIZE + sizeof(uint64_t), "a handle, and the offset in its allocation");

int device_export(struct device *d, const void *memory, struct device_handle *ret, struct err *err)
{
    const struct driver *f = d->f;
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

int device_import(struct device *d, const struct device_handle *from, struct device_mapping *ret, struct err *err)
{
    const struct driver *f = d->f;
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

void device_unimport(struct device *d, struct device_mapping *m)
{
    if (m->memory)
        (void)d->f->unimport((uintptr_t)m->base);
    *m = (struct device_mapping){NULL};
}
