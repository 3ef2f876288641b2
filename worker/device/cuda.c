// SPDX-License-Identifier: Apache-2.0
#include "worker/device/cuda.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As the driver's interface has them, which never changes for a function of a given name.
enum { CUDA_OK = 0, CUDA_NO_MEMORY = 2, CUDA_NOT_READY = 600 };

typedef struct {
    unsigned char bytes[CUDA_UUID_SIZE];
} cuda_uuid_bytes;

struct library {
    int (*init)(unsigned flags);
    int (*count)(int *n);
    int (*device)(int *ret, int ordinal);
    int (*uuid)(cuda_uuid_bytes *ret, int device);
    int (*retain)(void **ret, int device);
    int (*release)(int device);
    int (*current)(void **ret);
    int (*current_device)(int *ret);
    int (*push)(void *context);
    int (*pop)(void **ret);
    int (*alloc)(uint64_t *ret, size_t size);
    int (*free)(uint64_t memory);
    int (*stream_new)(void **ret, unsigned flags);
    int (*stream_free)(void *stream);
    int (*stream_query)(void *stream);
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
    {"cuMemAlloc_v2", offsetof(struct library, alloc)},
    {"cuMemFree_v2", offsetof(struct library, free)},
    {"cuStreamCreate", offsetof(struct library, stream_new)},
    {"cuStreamDestroy_v2", offsetof(struct library, stream_free)},
    {"cuStreamQuery", offsetof(struct library, stream_query)},
    {"cuGetErrorName", offsetof(struct library, error_name)},
};

struct cuda {
    struct library f;
    int device;
    bool retained; // the context is the device's own, which we keep
    void *context;
    cuda_uuid_bytes uuid;
};

// Stays loaded: its threads may run as long as the process does.
static int load(struct library *f, struct err *err)
{
    void *object = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return err_set(err, ERR_INVALID, "there is no NVIDIA driver here: %s", dlerror());
    for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
        void *p = dlsym(object, symbols[i].name);
        if (!p)
            return err_set(err, ERR_INVALID, "NVIDIA's libcuda.so.1 has no %s: its driver is too old", symbols[i].name);
        memcpy((char *)f + symbols[i].offset, &p, sizeof p);
    }
    return 0;
}

static int check(const struct library *f, const char *what, int r, struct err *err)
{
    const char *name = NULL;
    if (r == CUDA_OK)
        return 0;
    if (f->error_name(r, &name) != CUDA_OK || !name)
        name = "an unknown error";
    return err_set(err, r == CUDA_NO_MEMORY ? ERR_LIMIT : ERR_IO, "the GPU: %s: %s (%d)", what, name, r);
}

// Of the thread that calls, where its program has chosen one.
static int take_current(struct cuda *c, struct err *err)
{
    int r = check(&c->f, "its context", c->f.current(&c->context), err);
    if (r == 0 && c->context)
        r = check(&c->f, "its device", c->f.current_device(&c->device), err);
    return r;
}

static int take_own(struct cuda *c, struct err *err)
{
    const char *text = getenv("CADRE_DEVICE");
    int64_t ordinal = 0;
    int n = 0;
    if (text && !str_to_i64(text, &ordinal))
        return err_set(err, ERR_INVALID, "CADRE_DEVICE is %.20s, which is not the number of a GPU", text);
    int r = check(&c->f, "counting", c->f.count(&n), err);
    if (r == 0 && (ordinal < 0 || ordinal >= n))
        r = err_set(err, ERR_INVALID, "this rank has no GPU: CADRE_DEVICE is %s, and it sees %d",
                    text ? text : "not set", n);
    if (r == 0)
        r = check(&c->f, "its device", c->f.device(&c->device, (int)ordinal), err);
    if (r == 0)
        r = check(&c->f, "its context", c->f.retain(&c->context, c->device), err);
    c->retained = r == 0;
    return r;
}

int cuda_open(struct cuda **ret, struct err *err)
{
    struct cuda *c = xcalloc(1, sizeof *c);
    int r = load(&c->f, err);
    if (r == 0)
        r = check(&c->f, "starting", c->f.init(0), err);
    if (r == 0)
        r = take_current(c, err);
    if (r == 0 && !c->context)
        r = take_own(c, err);
    if (r == 0)
        r = check(&c->f, "its UUID", c->f.uuid(&c->uuid, c->device), err);
    if (r < 0) {
        cuda_close(c);
        c = NULL;
    }
    *ret = c;
    return r;
}

void cuda_close(struct cuda *c)
{
    if (c && c->retained)
        (void)c->f.release(c->device);
    free(c);
}

const unsigned char *cuda_uuid(const struct cuda *c)
{
    return c->uuid.bytes;
}

void cuda_uuid_text(const unsigned char uuid[CUDA_UUID_SIZE], char ret[CUDA_UUID_TEXT])
{
    size_t n = (size_t)snprintf(ret, CUDA_UUID_TEXT, "GPU-");
    for (int i = 0; i < CUDA_UUID_SIZE; i++)
        n += (size_t)snprintf(ret + n, CUDA_UUID_TEXT - n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                              uuid[i]);
}

int cuda_enter(struct cuda *c, struct err *err)
{
    return check(&c->f, "its context", c->f.push(c->context), err);
}

void cuda_leave(struct cuda *c)
{
    void *ignored;
    (void)c->f.pop(&ignored);
}

int cuda_alloc(struct cuda *c, size_t size, void **ret, struct err *err)
{
    uint64_t at = 0;
    int r = check(&c->f, "memory", c->f.alloc(&at, size), err);
    *ret = (void *)(uintptr_t)at;
    return r;
}

void cuda_free(struct cuda *c, void *memory)
{
    if (memory)
        (void)c->f.free((uintptr_t)memory);
}

int cuda_stream_new(struct cuda *c, void **ret, struct err *err)
{
    return check(&c->f, "a stream", c->f.stream_new(ret, 0), err);
}

void cuda_stream_free(struct cuda *c, void *stream)
{
    if (stream)
        (void)c->f.stream_free(stream);
}

int cuda_stream_poll(struct cuda *c, void *stream, struct err *err)
{
    int r = c->f.stream_query(stream);
    if (r == CUDA_NOT_READY)
        return 0;
    return r == CUDA_OK ? 1 : check(&c->f, "its stream", r, err);
}
