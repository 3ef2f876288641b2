// SPDX-License-Identifier: Apache-2.0
// A receiver in the same machine and container, whose memory this process, a sender, writes to: one copy, from the
// weights to where they belong there. The kernel looks up each run of the other memory by itself, so the side whose
// bytes lie together should be the other one. Of columns of 16 KiB that become rows, 1 GiB costs a quarter less CPU
// time if senders write than if receivers read (docs/benchmarks/transfer.md).
#pragma once

#include "common/base/err.h"
#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/blocks.h"
#include "worker/transfer/window.h"

struct local_receiver;

// ERR_UNAVAILABLE: it is elsewhere, shows no room, or this process may not write there. `wanted`: which of its n blocks
// are written.
// `from`: the blocks of the sender, in memory of the host.
int local_receiver_new(const struct window_place *where, const struct window_place *here, const bool *wanted, size_t n,
                       const struct blocks *from, struct local_receiver **ret, struct err *err);
void local_receiver_free(struct local_receiver *n); // accepts NULL
// Writes about as many bytes of those that the cursor has left. ERR_GONE: it has died, or wants nothing any more; then
// some of them may be there.
int local_receiver_write(struct local_receiver *n, struct transfer_cursor *c, size_t bytes, struct err *err);
