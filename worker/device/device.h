// SPDX-License-Identifier: Apache-2.0
// The GPU of this rank: memory, streams that fill it, and handles that give it to other processes. NVIDIA's driver,
// libcuda.so.1, is loaded when the first GPU is opened and is linked with nothing, so that one program runs on nodes
// with and without GPUs.
//
// A thread enters a device before it uses it, and leaves it afterwards. Entries nest, and several threads may be inside
// at a time. Errors of all functions:
//
//   ERR_NOMEM     the memory is short; nothing has changed
//   ERR_GONE      the GPU is of no more use to this process, as after an access to an illegal address: every later call
//                 fails, too, and a new process can use the GPU
//   ERR_INVALID   the device does not have that, or the handle does not open here
//   ERR_IO        any other failure of the driver
#pragma once

#include "common/base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICE_UUID_SIZE = 16, DEVICE_UUID_TEXT = 48, DEVICE_HANDLE_SIZE = 72 };

struct device;

struct device_handle {
    unsigned char bytes[DEVICE_HANDLE_SIZE];
};

struct device_mapping {
    void *memory; // NULL = none
    void *base;   // private
};

// The GPU whose context the calling thread has, else the one that CADRE_DEVICE names (the agent sets it). ERR_INVALID:
// there is no driver, it is too old, or this rank has no GPU.
int device_open(struct device **ret, struct err *err);
// Of programs that use CUDA themselves: ERR_GONE if the GPU is lost to the calling thread. Loads nothing.
int device_check_thread(struct err *err);

void device_close(struct device *d); // accepts NULL
const unsigned char *device_uuid(const struct device *d);
void device_uuid_text(const unsigned char uuid[DEVICE_UUID_SIZE], char ret[DEVICE_UUID_TEXT]); // "GPU-3f0c9a52-..."

int device_enter(struct device *d, struct err *err);
void device_leave(struct device *d);

// Memory of the device. To free it may take as long as all that the device still has to do.
int device_alloc(struct device *d, size_t size, void **ret, struct err *err);
void device_free(struct device *d, void *memory); // accepts NULL
// Pinned memory of the host: copies from and to it run beside the program, at the speed of the link.
int device_pin(struct device *d, size_t size, void **ret, struct err *err);
void device_unpin(struct device *d, void *memory); // accepts NULL

// A stream is a cudaStream_t. It and the legacy default stream (NULL) wait for each other; not if it is `apart`.
int device_stream_new(struct device *d, void **ret, struct err *err);
int device_stream_new_apart(struct device *d, void **ret, struct err *err);
void device_stream_free(struct device *d, void *stream); // accepts NULL
// 1: all of it is done, 0: not yet. An error: something on it has failed.
int device_stream_poll(struct device *d, void *stream, struct err *err);
#define DEVICE_NO_LIMIT INT64_MAX // of a wait that a flag ends
// Waits for that. ERR_TIMEOUT after limit_ms; ERR_CANCELED when *canceled (may be NULL) is true.
int device_stream_wait(struct device *d, void *stream, int64_t limit_ms, const atomic_bool *canceled, struct err *err);
// Behind what is on the stream. Each of the two is memory of the device or pinned; of other memory, this function may
// wait for the stream.
int device_copy(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err);

// An event is a place in a stream.
int device_event_new(struct device *d, void **ret, struct err *err);
void device_event_free(struct device *d, void *event); // accepts NULL
int device_event_record(struct device *d, void *event, void *stream, struct err *err);
int device_event_poll(struct device *d, void *event, struct err *err); // as device_stream_poll()
int device_event_wait(struct device *d, void *event, int64_t limit_ms, const atomic_bool *canceled, struct err *err);
// What comes later on the stream comes after the event, which may be of another stream.
int device_event_await(struct device *d, void *event, void *stream, struct err *err);

// Memory for another process of the same machine (CUDA IPC). Its owner frees it after the other one has closed it.
// `memory` may lie inside of an allocation, also of another library. ERR_INVALID: memory of this kind is not shared.
int device_export(struct device *d, const void *memory, struct device_handle *ret, struct err *err);
int device_import(struct device *d, const struct device_handle *handle, struct device_mapping *ret, struct err *err);
void device_unimport(struct device *d, struct device_mapping *m); // accepts one of nothing
