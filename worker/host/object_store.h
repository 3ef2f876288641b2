// SPDX-License-Identifier: Apache-2.0
// The objects that this process keeps: results that were not sent, and values that were put here. They are bytes with a
// number, and bounded. An object that is not pinned belongs to the connection that brought it, and is freed with it.
// One thread.
#pragma once

#include "common/base/err.h"
#include "common/wire/blob.h"
#include "worker/host/region.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_BYTES_DEFAULT ((size_t)1 << 30)
enum { STORE_OBJECT_COST = 256 }; // what an object counts for besides its bytes

struct object { // a range of a blob, from an offset to its end, and its values on the device
    uint64_t id;
    struct blob *blob;
    size_t offset, len;    // len: bytes in the blob and on the device
    struct region *values; // they follow what is in the blob; NULL = none
    bool pinned;
};

struct store;

struct store *store_new(size_t max_bytes, uint64_t seed);
void store_free(struct store *s); // accepts NULL

// Takes references to the blob and the values of `what`, and ignores its id and len. `owner` is only compared. Bytes on
// the device are limited only by the memory of the device. ERR_LIMIT: the message says how much there is and what to
// do. The object is valid until it is dropped.
int store_put(struct store *s, const struct object *what, const void *owner, const struct object **ret,
              struct err *err);
const struct object *store_get(const struct store *s, uint64_t id); // NULL = it is not here
bool store_pin(struct store *s, uint64_t id);                       // false = it is not here
bool store_drop(struct store *s, uint64_t id);                      // false = it is not here
size_t store_drop_owned(struct store *s, const void *owner); // drops the objects that are not pinned; returns how many
size_t store_used(const struct store *s);                    // bytes in host memory
size_t store_count(const struct store *s);
