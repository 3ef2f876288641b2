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

struct kept_object { // a range of a blob, from an offset to its end, and its values on the device
    uint64_t id;
    struct blob *blob;
    size_t offset, len;    // len: bytes in the blob and on the device
    struct region *values; // they follow what is in the blob; NULL = none
    bool pinned;
};

struct object_store;

struct object_store *object_store_new(size_t max_bytes, uint64_t seed);
void object_store_free(struct object_store *s); // accepts NULL

// Takes references to the blob and the values of `what`, and ignores its id and len. `owner` is only compared. Bytes on
// the device are limited only by the memory of the device. ERR_LIMIT: the message says how much there is and what to
// do. The object is valid until it is dropped.
int object_store_put(struct object_store *s, const struct kept_object *what, const void *owner,
                     const struct kept_object **ret, struct err *err);
const struct kept_object *object_store_get(const struct object_store *s, uint64_t id); // NULL = it is not here
bool object_store_pin(struct object_store *s, uint64_t id);                            // false = it is not here
bool object_store_drop(struct object_store *s, uint64_t id);                           // false = it is not here
size_t object_store_drop_owned(struct object_store *s,
                               const void *owner); // drops the objects that are not pinned; returns how many
