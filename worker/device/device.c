// SPDX-License-Identifier: Apache-2.0
#include "worker/device/device.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { SPINS = 2000, PAUSE_NS = 20 * 1000 }; // a small copy is done before a sleep would end

void device_close(struct device *d)
{
    if (d)
        d->backend->close(d);
}

bool device_is_gpu(const struct device *d)
{
    return d->is_gpu;
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
    return d->backend->enter(d, err);
}

void device_leave(struct device *d)
{
    d->backend->leave(d);
}

int device_alloc(struct device *d, size_t size, void **ret, struct err *err)
{
    return d->backend->alloc(d, size, ret, err);
}

void device_free(struct device *d, void *memory)
{
    if (memory)
        d->backend->free(d, memory);
}

int device_pin(struct device *d, size_t size, void **ret, struct err *err)
{
    return d->backend->pin(d, size, ret, err);
}

void device_unpin(struct device *d, void *memory)
{
    if (memory)
        d->backend->unpin(d, memory);
}

int device_stream_new(struct device *d, void **ret, struct err *err)
{
    return d->backend->stream_new(d, false, ret, err);
}

int device_stream_new_apart(struct device *d, void **ret, struct err *err)
{
    return d->backend->stream_new(d, true, ret, err);
}

void device_stream_free(struct device *d, void *stream)
{
    if (stream)
        d->backend->stream_free(d, stream);
}

int device_stream_poll(struct device *d, void *stream, struct err *err)
{
    return d->backend->stream_poll(d, stream, err);
}

typedef int (*poll_fn)(struct device *d, void *what, struct err *err);

static int wait_for(struct device *d, poll_fn poll, void *what, int64_t limit_ms, const atomic_bool *canceled,
                    struct err *err)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int64_t begun = clock_mono_ms(&clock_system);
    int done;
    for (unsigned turns = 0; (done = poll(d, what, err)) == 0; turns++) {
        if (canceled && atomic_load(canceled))
            return err_set(err, ERR_CANCELED, "canceled while the device worked");
        if (clock_mono_ms(&clock_system) - begun > limit_ms)
            return err_set(err, ERR_TIMEOUT, "the device was not done within %" PRId64 " ms", limit_ms);
        if (turns > SPINS)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return MIN(done, 0);
}

int device_stream_wait(struct device *d, void *stream, int64_t limit_ms, const atomic_bool *canceled, struct err *err)
{
    return wait_for(d, d->backend->stream_poll, stream, limit_ms, canceled, err);
}

int device_copy(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err)
{
    return len ? d->backend->copy(d, to, from, len, stream, err) : 0;
}

int device_event_new(struct device *d, void **ret, struct err *err)
{
    return d->backend->event_new(d, ret, err);
}

void device_event_free(struct device *d, void *event)
{
    if (event)
        d->backend->event_free(d, event);
}

int device_event_record(struct device *d, void *event, void *stream, struct err *err)
{
    return d->backend->event_record(d, event, stream, err);
}

int device_event_poll(struct device *d, void *event, struct err *err)
{
    return d->backend->event_poll(d, event, err);
}

int device_event_wait(struct device *d, void *event, int64_t limit_ms, const atomic_bool *canceled, struct err *err)
{
    return wait_for(d, d->backend->event_poll, event, limit_ms, canceled, err);
}

int device_event_await(struct device *d, void *event, void *stream, struct err *err)
{
    return d->backend->event_await(d, event, stream, err);
}

int device_export(struct device *d, const void *memory, struct device_handle *ret, struct err *err)
{
    return d->backend->export(d, memory, ret, err);
}

int device_import(struct device *d, const struct device_handle *handle, struct device_mapping *ret, struct err *err)
{
    return d->backend->import(d, handle, ret, err);
}

void device_unimport(struct device *d, struct device_mapping *m)
{
    if (m->memory)
        d->backend->unimport(d, m);
    *m = (struct device_mapping){NULL};
}
