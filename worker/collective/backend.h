// SPDX-License-Identifier: Apache-2.0
// A back end moves the bytes of a communicator. Each one is a shared object of its own. The first communicator that
// needs it loads it, so programs also run where its libraries are missing.
#pragma once

#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

#define BACKEND_SYMBOL "cadre_backend" // const struct backend *cadre_backend(void)
enum { BACKEND_VERSION = 3 };

enum backend_kind {
    BACKEND_ALL_REDUCE,
    BACKEND_BROADCAST,
    BACKEND_ALL_GATHER,
    BACKEND_REDUCE_SCATTER,
    BACKEND_ALL_TO_ALL,
    BACKEND_SEND,
    BACKEND_RECV,
    BACKEND_BARRIER,
};

struct backend_op {
    enum backend_kind kind;
    int dtype;       // enum safetensors_dtype
    size_t item;     // bytes of an element; 1 where it is smaller, and is only moved: `n` counts bytes then
    const void *in;  // of broadcast, and of recv: NULL
    void *out;       // of send: NULL
    size_t n;        // elements; of each member where there are more
    int reduction;   // enum cadre_reduction
    int peer;        // root, receiver or sender
    uint32_t number; // of the collective, the same on all members
    int64_t limit_ms;
};

struct backend_config {
    int index, n;
    const char *const *names; // of all members, for messages; good until close()
    const char *address;      // of this host, as others reach it
    int64_t limit_ms;
    void *stream; // of the program; NULL = run() returns when the work is done, else when it is on the stream
};

struct backend {
    unsigned version; // BACKEND_VERSION
    // Returns the state of this member, and in *ret_blob the data that the others need to connect to it. The caller
    // frees *ret_blob. NULL: see the error.
    void *(*open)(const struct backend_config *config, char **ret_blob, size_t *ret_len, struct err *err);
    // Connects to the others, with the blobs of all members. Waits for them.
    int (*connect)(void *self, char *const *blobs, const size_t *lens, struct err *err);
    // ERR_INVALID: the back end cannot do that, nothing was sent. ERR_TIMEOUT, ERR_IO: it is broken.
    int (*run)(void *self, const struct backend_op *op, struct err *err);
    // Waits until the work on the program's stream is done. Errors as of run(). NULL: the back end knows no
    // streams.
    int (*wait)(void *self, int64_t limit_ms, struct err *err);
    void (*abort)(void *self); // from any thread: running operations fail soon, and their work ends
    void (*close)(void *self);
};
