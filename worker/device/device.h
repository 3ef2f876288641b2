// SPDX-License-Identifier: Apache-2.0
// The GPU of this rank: its memory, its streams, and handles that let other processes use its memory. The first
// device_open() loads NVIDIA's driver, libcuda.so.1. Nothing links it, so one program runs on nodes with and without
// GPUs.
//
// A thread enters a device before it uses it, and leaves it afterwards. Entries nest, and several threads may be inside
// at a time. Errors of all functions:
//
//   ERR_NOMEM     there is not enough memory; nothing has changed
//   ERR_GONE      this process cannot use the GPU any more, as after an access to an illegal address: every later call
//                 fails, too; a new process can use the GPU
//   ERR_INVALID   the device cannot do that, or the handle does not open here
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

// Opens the GPU of the context that the calling thread has. Without a context, it opens the GPU that CADRE_DEVICE
// names, which the agent sets. ERR_INVALID: there is no driver, it is too old, or this rank has no GPU.
int device_open(struct device **ret, struct err *err);
// For programs that use CUDA themselves: ERR_GONE if the calling thread cannot use its GPU any more. Loads nothing.
int device_check_thread(struct err *err);

void device_close(struct device *d); // accepts NULL
const unsigned char *device_uuid(const struct device *d);
void device_uuid_text(const unsigned char uuid[DEVICE_UUID_SIZE], char ret[DEVICE_UUID_TEXT]); // "GPU-3f0c9a52-..."

int device_enter(struct device *d, struct err *err);
void device_leave(struct device *d);

// Memory of the device. device_free() may wait for all work of the device.
int device_alloc(struct device *d, size_t size, void **ret, struct err *err);
void device_free(struct device *d, void *memory); // accepts NULL
// Pinned memory of the host. Copies from and to it run beside the program, at the speed of the link.
int device_pin(struct device *d, size_t size, void **ret, struct err *err);
void device_unpin(struct device *d, void *memory); // accepts NULL

// A stream is a cudaStream_t. It and the legacy default stream (NULL) wait for each other, unless it is `apart`.
int device_stream_new(struct device *d, void **ret, struct err *err);
int device_stream_new_apart(struct device *d, void **ret, struct err *err);
void device_stream_free(struct device *d, void *stream); // accepts NULL
// 1: all work on the stream is done, 0: not yet. An error: some work on it has failed.
int device_stream_poll(struct device *d, void *stream, struct err *err);
#define DEVICE_NO_LIMIT INT64_MAX // the limit of a wait that only a flag ends
// Waits until all work is done. ERR_TIMEOUT after limit_ms; ERR_CANCELED when *canceled (may be NULL) becomes true.
int device_stream_wait(struct device *d, void *stream, int64_t limit_ms, const atomic_bool *canceled, struct err *err);
// Copies after the work that is on the stream. Both addresses are memory of the device or pinned memory. With other
// memory, this function may wait for the stream.
int device_copy(struct device *d, void *to, const void *from, size_t len, void *stream, struct err *err);

// An event is a place in a stream.
int device_event_new(struct device *d, void **ret, struct err *err);
void device_event_free(struct device *d, void *event); // accepts NULL
int device_event_record(struct device *d, void *event, void *stream, struct err *err);
int device_event_poll(struct device *d, void *event, struct err *err); // as device_stream_poll()
int device_event_wait(struct device *d, void *event, int64_t limit_ms, const atomic_bool *canceled, struct err *err);
// Later work on the stream waits for the event, which may be on another stream.
int device_event_await(struct device *d, void *event, void *stream, struct err *err);

// Shares memory with another process on the same machine (CUDA IPC). The owner frees it after the other process has
// closed it. `memory` may lie inside of an allocation, also of another library. ERR_INVALID: memory of this kind cannot
// be shared.
int device_export(struct device *d, const void *memory, struct device_handle *ret, struct err *err);
int device_import(struct device *d, const struct device_handle *handle, struct device_mapping *ret, struct err *err);
void device_unimport(struct device *d, struct device_mapping *m); // accepts an empty one
