// SPDX-License-Identifier: Apache-2.0
// The bytes from one rank to another over a connection, straight from memory and into it. Both sides know the order, so
// nothing but values is sent.
#pragma once

#include "common/base/err.h"
#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/blocks.h"

struct flow;

// `fd` is borrowed and does not block. The blocks are the sender's or the receiver's, as `out` says.
struct flow *flow_new(int fd, bool out, const struct blocks *blocks);
void flow_free(struct flow *f);                      // accepts NULL
struct transfer_cursor *flow_cursor(struct flow *f); // what there is to move; to be initialized once
// As much as can be now, up to some MiB. 1: all of it is moved, 0: more is left. ERR_GONE.
int flow_run(struct flow *f, struct err *err);
bool flow_has_work(const struct flow *f); // false: nothing can be moved before the cursor may go on
size_t flow_moved(const struct flow *f);  // pieces of the plan that are moved as a whole
