// SPDX-License-Identifier: Apache-2.0
// The blocks of this rank, in the order of the tensors of its side. A block is in memory of the host or of the GPU.
#pragma once

#include "worker/device/copier.h"
#include "worker/device/sweeper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_copier { // the caller is inside of the device, and has borrowed the copier
    struct device *device;
    struct copier *copier;
    struct sweeper *sweeper;
    int64_t until_ms; // end of the time of the transfer, on the monotonic clock
};

struct block {
    void *data;
    size_t len;
    bool on_device;
};

struct blocks {
    const struct block *list;
    size_t n;
    const struct gpu_copier *gpu; // NULL = all blocks are in memory of the host
};

// Functions that wait for the device fail with ERR_TIMEOUT at the end of the time of the transfer.

bool blocks_any_on_device(const struct blocks *b);
// Allocates memory of the device. If there is no room, waits for memory that is being freed. ERR_NOMEM.
int blocks_alloc(const struct blocks *b, size_t size, void **ret, struct err *err);
// Copies bytes of a block on the device to memory of the host. They are there when it returns.
int blocks_download(const struct blocks *b, size_t i, uint64_t at, void *to, size_t len, struct err *err);
// The same for any memory of the device.
int blocks_fetch(const struct blocks *b, const void *from, void *to, size_t len, struct err *err);

// Bytes in memory of the host that belong into a block.
struct pick {
    size_t block;
    uint64_t at; // in the block
    char *packed;
    size_t len;
};

// Copies the picks into their blocks. The packed bytes may change when it returns.
int blocks_put(const struct blocks *b, const struct pick *picks, size_t n, struct err *err);
int blocks_settle(const struct blocks *b, struct err *err); // waits for all copies
// The same, but it waits at least COPIER_LIMIT_MS, also if the time of the transfer is over.
int blocks_finish(const struct blocks *b, struct err *err);
// Call this before you unmap memory of the device, which would wait for ever if the device hangs. False: the memory has
// to stay.
bool blocks_let_go(const struct blocks *b);
