// SPDX-License-Identifier: Apache-2.0
// The bytes from one rank to another over a connection, straight from memory to memory. Both sides know the order of
// the bytes, so only values are sent.
#pragma once

#include "common/base/err.h"
#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/blocks.h"

struct flow;

// `fd` is borrowed and does not block. The blocks are the sender's or the receiver's, as `out` says.
struct flow *flow_new(int fd, bool out, const struct blocks *blocks);
void flow_free(struct flow *f);                      // accepts NULL
struct transfer_cursor *flow_cursor(struct flow *f); // the bytes to move; the caller initializes it once
// Moves up to some MiB, without waiting. 1: all bytes have moved, 0: more are left. ERR_GONE: the connection has ended.
int flow_run(struct flow *f, struct err *err);
bool flow_has_work(const struct flow *f); // false: nothing can move before the cursor may continue
size_t flow_moved(const struct flow *f);  // pieces of the plan that have moved completely
