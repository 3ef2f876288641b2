// SPDX-License-Identifier: Apache-2.0
// The device of the stand-in for libcuda.so.1: its memory, and its streams, which run on a thread of their own. Memory
// is a file in the folder GPU_STAND_IN, so that other processes can open it. Its address cannot be read or written: a
// program that takes it for memory of the host dies.
#pragma once

#include "tests/unit/worker/device/cuda_stand_in.h"

struct memory {
    char *address, *view; // of the device; where it can be read, the same for pinned memory
    size_t len;
    char file[48]; // "" = pinned memory of the host
    bool imported;
};

struct op {
    bool (*turn)(void *ctx); // gets `ctx`, the op itself if that is NULL
    void *ctx;
    uint64_t number;
    int64_t due_ns;
    // For a copy, an event or a kernel:
    void *to;
    const void *from;
    size_t len;
    void (*kernel)(void *memory, size_t n, double x);
    double x;
};

const char *fake_folder(void);
void fake_lock(void);
int fake_unlock(int code); // returns it

// All of these with the lock.

struct memory *fake_find(const void *at); // NULL = neither memory of the device nor pinned
struct memory *fake_memory_new(size_t len);
bool fake_map(struct memory *m, bool create); // its file; false: there is none
void fake_map_pinned(struct memory *m);
void fake_forget(struct memory *m);

void *fake_stream_new(bool apart);
void fake_stream_free(void *stream);
bool fake_idle(void *stream);                  // NULL = all streams
uint64_t fake_put(void *stream, struct op op); // its number
void fake_wait_idle(void *stream);             // lets go of the lock meanwhile
int fake_broken(void);                         // the error that the context has for good, 0 = none
void fake_break(int code);
