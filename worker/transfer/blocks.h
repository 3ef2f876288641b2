// SPDX-License-Identifier: Apache-2.0
// The blocks of this rank, by the numbers of the tensors of its side: in memory of the host, or of the rank's GPU.
#pragma once

#include "worker/device/copier.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_copier { // the caller is inside of the device, and has lent the copier
    struct device *device;
    struct copier *copier;
    int64_t until_ms; // end of the transfer's time, of the monotonic clock
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

// What waits for the device fails with ERR_TIMEOUT at the end of the transfer's time.

bool blocks_any_on_device(const struct blocks *b);
// Bytes of a block that is on the device, to memory of the host. They are there when it returns.
int blocks_download(const struct blocks *b, size_t i, uint64_t at, void *to, size_t len, struct err *err);
// The same of any memory of the device.
int blocks_fetch(const struct blocks *b, const void *from, void *to, size_t len, struct err *err);

// Bytes that are in the memory of the host, beside the block to which they belong.
struct pick {
    size_t block;
    uint64_t at; // in the block
    char *packed;
    size_t len;
};

// Into their blocks. When it returns, what is packed may change.
int blocks_put(const struct blocks *b, const struct pick *picks, size_t n, struct err *err);
int blocks_settle(const struct blocks *b, struct err *err); // waits for all copies
// The same for what must not fail just because the time of the transfer is over: COPIER_LIMIT_MS at least.
int blocks_finish(const struct blocks *b, struct err *err);
// Before memory of the device is freed or unmapped, which waits for ever where the device hangs. False: it has to stay.
bool blocks_let_go(const struct blocks *b);
