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
    char *data;        // len bytes
    struct area *area; // of shared memory in which they lie, and where others may change them; NULL = none
    // private
    size_t size;         // charged to the quota
    size_t room;         // of the block; more than `size` where it was kept from an earlier blob
    struct quota *quota; // may be NULL
    size_t behind;       // this struct, bytes of its block
    bool inside;         // data is there
    bool lent;           // data is the caller's
    bool adopted;        // data is malloc()'s
    uint32_t tag;        // for the area's owner
};

// NULL where the quota (which may be NULL: not counted) does not allow it. The content is not initialised.
struct blob *blob_new(size_t len, struct quota *quota);
struct blob *blob_copy(const void *data, size_t len, struct quota *quota);
struct blob *blob_adopt(char *data, size_t len); // takes what malloc() gave; not counted
// What stays the caller's, who has to see to it that there is no other reference before it goes; not counted.
struct blob *blob_lend(const void *data, size_t len);
// Of what lies at `data` in an area, to which it holds a reference. Not counted: the memory is its owner's.
struct blob *blob_in_area(struct area *a, const char *data, size_t len, uint32_t tag);
// Makes room for `more` bytes behind len, growing in steps; len stays. False where the quota does not allow it. Only
// before it is shared; not of one that was adopted or lent.
bool blob_reserve(struct blob *b, size_t more);
// From now on it counts for `quota` instead (memory of an area for nobody). False, and nothing changed, where that does
// not allow it.
bool blob_recharge(struct blob *b, struct quota *quota);
bool blob_is_charged(const struct blob *b); // to a quota
struct blob *blob_ref(struct blob *b);
void blob_unref(struct blob *b); // accepts NULL
