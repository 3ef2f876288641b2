// SPDX-License-Identifier: Apache-2.0
// The objects that this process keeps: results that were not sent, and values that were put here. Bytes by number,
// bounded; pure data. An object that is not pinned belongs to the connection that brought it, and is freed with it. One
// thread.
#pragma once

#include "common/base/err.h"
#include "common/wire/blob.h"

#include <stdbool.h>
#include <stdint.h>

#define STORE_BYTES_DEFAULT ((size_t)1 << 30)
enum { STORE_OBJECT_COST = 256 }; // what an object counts for besides its bytes

struct object { // a stretch of a blob
    uint64_t id;
    struct blob *blob;
    size_t offset, len;
    bool pinned;
};

struct store;

struct store *store_new(size_t max_bytes, uint64_t seed);
void store_free(struct store *s); // accepts NULL

// Takes a reference to the blob. `owner` is only compared. ERR_LIMIT says how much there is and what to do. The object
// is valid until it is dropped.
int store_put(struct store *s, struct blob *blob, size_t offset, const void *owner, bool pinned,
              const struct object **ret, struct err *err);
const struct object *store_get(const struct store *s, uint64_t id); // NULL = it is not here
bool store_pin(struct store *s, uint64_t id);                       // false: it is not here
bool store_drop(struct store *s, uint64_t id);                      // likewise
size_t store_drop_owned(struct store *s, const void *owner);        // what is not pinned; how many
size_t store_used(const struct store *s);                           // bytes
size_t store_count(const struct store *s);
