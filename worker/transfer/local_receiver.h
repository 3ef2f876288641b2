// SPDX-License-Identifier: Apache-2.0
// A receiver on the same machine and in the same container. This process, a sender, writes to its memory with one copy,
// from the weights to their place there. The kernel looks up each run of bytes in the memory of the other process. So
// the side whose bytes are contiguous should be the other process. If columns of 16 KiB become rows, 1 GiB costs a
// quarter less CPU time when senders write than when receivers read (docs/benchmarks/transfer.md).
#pragma once

#include "common/base/err.h"
#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/blocks.h"
#include "worker/transfer/window.h"

struct local_receiver;

// ERR_UNAVAILABLE: the receiver is elsewhere, shows no room, or does not let this process write there. `wanted`: a flag
// for each of its n blocks, true if this process writes to it. `from`: the blocks of the sender, in memory of the host.
int local_receiver_new(const struct window_place *where, const struct window_place *here, const bool *wanted, size_t n,
                       const struct blocks *from, struct local_receiver **ret, struct err *err);
void local_receiver_free(struct local_receiver *n); // accepts NULL
// Writes about as many bytes as this, or fewer if the cursor has fewer left. ERR_GONE: the receiver has died, or has
// given up; some of the bytes may have been written.
int local_receiver_write(struct local_receiver *n, struct transfer_cursor *c, size_t bytes, struct err *err);
