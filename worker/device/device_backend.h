// SPDX-License-Identifier: Apache-2.0
// What a back end of device.h has, function by function. The first member of each back end's own device.
#pragma once

#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { DEVICE_UUID_SIZE = 16, DEVICE_HANDLE_SIZE = 72 };

struct device;

struct device_handle {
    unsigned char bytes[DEVICE_HANDLE_SIZE];
};

struct device_mapping {
    void *memory; // NULL = none
    void *base;   // private
};

struct device_backend {
    void (*close)(struct device *d);
    int (*enter)(struct device *d, struct err *err);
    void (*leave)(struct device *d);
    int (*alloc)(struct device *d, size_t size, void **ret, struct err *err);
    void (*free)(struct device *d, void *memory);
    int (*pin)(struct device *d, size_t size, void **ret, struct err *err);
    void (*unpin)(struct device *d, void *memory);
    int (*stream_new)(struct device *d, bool apart, void **ret, struct err *err);
    void (*stream_free)(struct device *d, void *stream);
    int (*stream_poll)(struct device *d, void *stream, struct err *err);
    int (*copy)(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err);
    int (*event_new)(struct device *d, void **ret, struct err *err);
    void (*event_free)(struct device *d, void *event);
    int (*event_record)(struct device *d, void *event, void *stream, struct err *err);
    int (*event_poll)(struct device *d, void *event, struct err *err);
    int (*event_await)(struct device *d, void *event, void *stream, struct err *err);
    int (*export)(struct device *d, const void *memory, struct device_handle *ret, struct err *err);
    int (*import)(struct device *d, const struct device_handle *handle, struct device_mapping *ret, struct err *err);
    void (*unimport)(struct device *d, const struct device_mapping *m);
};

struct device {
    const struct device_backend *backend;
    bool is_gpu;
    unsigned char uuid[DEVICE_UUID_SIZE];
};
