// SPDX-License-Identifier: Apache-2.0
// A body of a record, or a part of one, as it arrived: in a blob, or in the reader's input, which is reused as soon as
// the record is handled.
#pragma once

#include "common/wire/blob.h"
#include "common/wire/record_writer.h"

struct call_body {
    const char *data;
    size_t len;
    struct blob *blob; // in which it lies; NULL = in the reader's input
    const char *next;  // of a first piece: what comes next, where that can be looked at already; NULL = it cannot
    size_t next_len;
    bool next_last; // it is all that is left
};

// Something that stays, charged to the quota: a reference to the blob, or a copy. NULL = over the quota.
struct blob *body_keep(const struct call_body *b, struct quota *quota);
// The same for one of many pieces. Each costs something, however short it is.
struct blob *body_keep_piece(const struct call_body *b, struct quota *quota);
// A copy: what is going to be read must not change meanwhile, as what lies in shared memory may.
struct blob *body_copy_piece(const struct call_body *b, struct quota *quota);
// It, in what was kept of it.
struct record_part body_part(const struct call_body *b, struct blob *kept);
