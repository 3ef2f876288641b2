// SPDX-License-Identifier: Apache-2.0
// The body of a CALL. Its arguments may lie in shared memory.
#pragma once

#include "common/wire/call_head.h"
#include "common/wire/record_reader.h"

// The body, to be kept. *ret_tail: its arguments, borrowed from the record, where they lie in shared memory and can be
// used there; NULL: they are in the body. Returns NULL where there is no room for what has to be copied.
struct blob *body_keep(const struct record *r, struct quota *quota, struct blob **ret_tail);
// Its head, which lies in the body.
int body_head(const struct blob *body, struct call_head *ret, struct err *err);
// Both in one, ours. NULL: there is no room.
struct blob *body_join(const struct blob *body, const struct blob *tail, struct quota *quota);
