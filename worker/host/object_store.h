// SPDX-License-Identifier: Apache-2.0
// The objects that this process keeps: results that were not sent, and values that were put here. Bytes by number,
// bounded. An object that is not pinned belongs to the connection that brought it, and is freed with it. One
// thread.
#pragma once

#include "common/base/err.h"
#include "common/wire/blob.h"
#include "worker/host/region.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_BYTES_DEFAULT ((size_t)1 << 30)
enum { STORE_OBJECT_COST = 256 }; // what an object counts for besides its bytes

struct object { // a stretch of a blob, from an offset to its end, and what of it is on the device
    uint64_t id;
    struct blob *blob;
    size_t offset, len;    // len: of all of it
    struct region *values; // behind what is in the blob; NULL = nothing is there
    bool pinned;
};

struct store;

struct store *store_new(size_t max_bytes, uint64_t seed);
void store_free(struct store *s); // accepts NULL

// Takes references to the blob and the values of `what`, whose id and len do not count. `owner` is only compared. Bytes
// on the device have no limit but its memory. ERR_LIMIT says how much there is and what to do. The object is valid
// until it is dropped.
int store_put(struct store *s, const struct object *what, const void *owner, const struct object **ret,
              struct err *err);
const struct object *store_get(const struct store *s, uint64_t id); // NULL = it is not here
bool store_pin(struct store *s, uint64_t id);                       // false: it is not here
bool store_drop(struct store *s, uint64_t id);                      // likewise
size_t store_drop_owned(struct store *s, const void *owner);        // what is not pinned; how many
size_t store_used(const struct store *s);                           // bytes in memory of the host
size_t store_count(const struct store *s);
