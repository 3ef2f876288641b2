// SPDX-License-Identifier: Apache-2.0
// Bytes that several queues share: a body that goes to 400 ranks is stored once, with a count. Its creator may write
// the content until a second reference exists. After that nobody may. One thread.
#pragma once

#include "common/wire/area.h"
#include "common/wire/quota.h"

#include <stddef.h>
#include <stdint.h>

struct blob {
    unsigned refs;
    size_t len;
    char *data;        // of len bytes
    struct area *area; // the shared memory with the bytes, if others may change them; NULL = none
    // private
    size_t size;         // charged to the quota
    size_t beside;       // charged to it as well (blob_pays_beside())
    size_t room;         // of the block; more than `size` if the block was kept from an earlier blob
    struct quota *quota; // may be NULL
    size_t behind;       // this struct, bytes of its block
    bool inside;         // data is in the same block as this struct
    bool lent;           // data is the caller's
    bool adopted;        // data is malloc()'s
    uint32_t tag;        // for the area's owner
};

// NULL if the quota has no room (NULL: not counted). The content is not initialised.
struct blob *blob_new(size_t len, struct quota *quota);
struct blob *blob_copy(const void *data, size_t len, struct quota *quota);
struct blob *blob_adopt(char *data, size_t len); // takes over memory from malloc(); not counted
// Memory that stays the caller's. The caller must make sure that no other reference is left before it frees the memory.
// Not counted.
struct blob *blob_lend(const void *data, size_t len);
// Memory at `data` in an area; the blob has a reference to the area. Not counted: the owner of the memory pays.
struct blob *blob_in_area(struct area *a, const char *data, size_t len, uint32_t tag);
// Makes room for `more` bytes after len, growing in steps; len stays. False if the quota has no room. Call it only
// before the blob is shared, and not for one that was adopted or lent.
bool blob_reserve(struct blob *b, size_t more);
// From now on, `quota` pays for it (nobody pays for memory of an area). False if the quota has no room; then nothing
// changes.
bool blob_recharge(struct blob *b, struct quota *quota);
// Its quota also pays for `n` bytes of others, which keep something for each reference to it, until it is freed. If it
// has no quota, `quota` pays. False: there is no room.
bool blob_pays_beside(struct blob *b, struct quota *quota, size_t n);
bool blob_is_charged(const struct blob *b); // its bytes, to a quota
struct blob *blob_ref(struct blob *b);
void blob_unref(struct blob *b); // accepts NULL
