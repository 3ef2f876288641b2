// SPDX-License-Identifier: Apache-2.0
// The body of a record, or a part of it, as it arrived: in a blob, or in the reader's input. The reader uses its input
// again as soon as the record is handled.
#pragma once

#include "common/wire/blob.h"
#include "common/wire/record_writer.h"

struct call_body {
    const char *data;
    size_t len;
    struct blob *blob; // contains the body; NULL = the reader's input does
    const char *next;  // the bytes after the first piece, if they can be read already; else NULL
    size_t next_len;
    bool next_last; // nothing follows `next`
};

// Keeps the body, charged to the quota: a reference to the blob, or a copy. NULL = over the quota.
struct blob *body_keep(const struct call_body *b, struct quota *quota);
// The same for one of many pieces. A copy costs at least some bytes, however short the piece is.
struct blob *body_keep_piece(const struct call_body *b, struct quota *quota);
// The same, always as a copy. Bytes in shared memory may change while somebody reads them; a copy does not.
struct blob *body_copy_piece(const struct call_body *b, struct quota *quota);
// The body as a part of `kept`, which one of the functions above returned.
struct record_part body_part(const struct call_body *b, struct blob *kept);
