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

bool blocks_any_on_device(const struct blocks *b);
// Bytes of a block that is on the device, to memory of the host. They are there when it returns.
int blocks_download(const struct blocks *b, size_t i, uint64_t at, void *to, size_t len, struct err *err);

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
