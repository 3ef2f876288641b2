// SPDX-License-Identifier: Apache-2.0
#include "worker/device/host_device.h"

#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 }; // as a GPU aligns its memory

static char place; // of every stream and event

static void close_host(struct device *d)
{
    free(d);
}

static int enter(struct device *d, struct err *err)
{
    (void)d, (void)err;
    return 0;
}

static void leave(struct device *d)
{
    (void)d;
}

// Not xmalloc(): a tensor may be larger than the memory, and who asked for it hears about that.
static int alloc(struct device *d, size_t size, void **ret, struct err *err)
{
    (void)d;
    *ret = size <= SIZE_MAX - ALIGN ? aligned_alloc(ALIGN, MAX((size + ALIGN - 1) / ALIGN, (size_t)1) * ALIGN) : NULL;
    return *ret ? 0 : err_set(err, ERR_NOMEM, "there is no room for %zu bytes in the memory of the host", size);
}

static void release(struct device *d, void *memory)
{
    (void)d;
    free(memory);
}

static int place_new(struct device *d, void **ret, struct err *err)
{
    (void)d, (void)err;
    *ret = &place;
    return 0;
}

static int stream_new(struct device *d, bool apart, void **ret, struct err *err)
{
    (void)apart;
    return place_new(d, ret, err);
}

static void place_free(struct device *d, void *what)
{
    (void)d, (void)what;
}

static int done(struct device *d, void *what, struct err *err)
{
    (void)d, (void)what, (void)err;
    return 1;
}

static int nothing_to_do(struct device *d, void *event, void *stream, struct err *err)
{
    (void)d, (void)event, (void)stream, (void)err;
    return 0;
}

static int copy(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err)
{
    (void)d, (void)stream, (void)err;
    memmove(to, from, len);
    return 0;
}

static int export(struct device *d, const void *memory, struct device_handle *ret, struct err *err)
{
    (void)d, (void)memory, (void)ret;
    return err_set(err, ERR_INVALID, "memory of the host has no handle for other processes");
}

static int import(struct device *d, const struct device_handle *handle, struct device_mapping *ret, struct err *err)
{
    (void)d, (void)handle;
    *ret = (struct device_mapping){NULL};
    return err_set(err, ERR_INVALID, "memory of a GPU cannot be opened without a GPU");
}

static void unimport(struct device *d, const struct device_mapping *m)
{
    (void)d, (void)m; // there are none
}

static const struct device_backend backend = {
    .close = close_host,
    .enter = enter,
    .leave = leave,
    .alloc = alloc,
    .free = release,
    .pin = alloc,
    .unpin = release,
    .stream_new = stream_new,
    .stream_free = place_free,
    .stream_poll = done,
    .copy = copy,
    .event_new = place_new,
    .event_free = place_free,
    .event_record = nothing_to_do,
    .event_poll = done,
    .event_await = nothing_to_do,
    .export = export,
    .import = import,
    .unimport = unimport,
};

struct device *host_device_open(void)
{
    struct device *d = xcalloc(1, sizeof *d);
    d->backend = &backend;
    return d;
}
