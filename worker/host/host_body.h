// SPDX-License-Identifier: Apache-2.0
// The body of a CALL. Its arguments may lie in shared memory.
#pragma once

#include "common/wire/call_head.h"
#include "common/wire/record_reader.h"

// Keeps the body of the record. *ret_tail: its arguments, borrowed from the record, if they are in shared memory and
// can be used there; NULL: they are in the body. Returns NULL if there is no room for what has to be copied.
struct blob *body_keep(const struct record *r, struct quota *quota, struct blob **ret_tail);
// Decodes the head of the body. It points into the body.
int body_head(const struct blob *body, struct call_head *ret, struct err *err);
// Copies both into one blob, which the caller owns. Returns NULL if there is no room.
struct blob *body_join(const struct blob *body, const struct blob *tail, struct quota *quota);
