// SPDX-License-Identifier: Apache-2.0
// The bytes that one rank sends to another, in order: both sides walk over the same pieces, so the bytes need no names.
// Pure.
#pragma once

#include "common/transfer/transfer_plan.h"

struct transfer_chunk {
    size_t source, destination; // the tensor's number on each side
    uint64_t from, to, len;     // bytes: offsets in the block of the sender and of the receiver
};

struct transfer_cursor {                 // stays where it is
    uint64_t left;                       // bytes
    const struct transfer_piece *pieces; // of this pair of ranks
    size_t n, i;                         // pieces, and those that it has passed
    size_t until; // pieces that can be moved now; all of them, unless the owner sets a lower number
    // private
    const struct transfer_side *sides[2];
    uint32_t ranks[2];
    struct shard blocks[2];
    struct shard_runs runs;
    uint64_t done; // of the run
};

// Over the pieces of this pair of ranks; the sender may be a relay, as in a plan. Sides and plan are borrowed.
void transfer_cursor_init(struct transfer_cursor *c, const struct transfer_side *from, const struct transfer_side *to,
                          const struct transfer_plan *plan, uint32_t sender, uint32_t receiver);
// The next bytes that are contiguous on both sides, at most `max`. False: no bytes are left, or none can be moved now.
bool transfer_cursor_next(struct transfer_cursor *c, uint64_t max, struct transfer_chunk *ret);
