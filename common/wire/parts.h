// SPDX-License-Identifier: Apache-2.0
// A body or a text in parts of blobs, one after the other. It is read from the front, and can be read again.
#pragma once

#include "common/wire/blob.h"

struct record_part { // a range of a blob
    struct blob *blob;
    size_t offset, len;
};

struct parts { // {0} is empty
    struct record_part *at;
    size_t n, len, size;
    size_t now, taken; // the read position: a part, and a byte in it
};

void parts_done(struct parts *p);
void parts_add(struct parts *p, struct blob *b, size_t offset, size_t len); // takes over the reference
// The copy is uncounted if the quota has no room.
void parts_add_copy(struct parts *p, const void *data, size_t len, struct quota *quota);
void parts_move(struct parts *p, struct parts *behind); // `behind` is then empty
void parts_rewind(struct parts *p);
const char *parts_look(struct parts *p, size_t *ret_len); // the next segment; NULL = all was read
void parts_skip(struct parts *p, size_t n);               // at most that much
// The next n bytes, at most as many as parts_look() has just returned. Bytes in shared memory are copied first, so they
// do not change after they were looked at. Read all of a part this way, or none of it.
const char *parts_own(struct parts *p, size_t n, struct quota *quota);
size_t parts_read(struct parts *p, char *out, size_t size);
size_t parts_uncharged(const struct parts *p); // bytes that no quota pays for
