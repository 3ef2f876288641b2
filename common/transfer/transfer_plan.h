// SPDX-License-Identifier: Apache-2.0
// How tensors get from one group to another group with a different mesh: which rank sends which block to which rank.
// Each receiver gets each of its elements once. Pure: the same arguments give the same plan on every rank, so no rank
// has to send the plan.
//
// If no sender on a node has an element, the element enters the node once: one receiver that wants it gets it, and
// relays it to the others. The same applies to a pod. If several ranks could send an element, the nearest ones are
// chosen, and among these the one that has sent least. The receivers on a node relay about equally much. As long as the
// difference is small, the same receiver relays again, because each pair of ranks needs a connection.
//
// No ranks wait for each other in a circle. A relay sends a piece on as soon as it has all of it. A piece passes at
// most two relays. A receiver accepts pieces whether or not it can relay them yet. So all pieces from senders arrive
// first, then those from first relays, then those from second relays.
#pragma once

#include "common/base/arena.h"
#include "common/transfer/transfer_side.h"

enum { TRANSFER_PIECES_MAX = 1 << 22, TRANSFER_MISMATCHES_MAX = 1000 };

struct transfer_piece {
    uint32_t from;              // a rank of the senders; from their number on, the receivers, which relay
    uint32_t to;                // a rank of the receivers
    size_t source, destination; // the tensor's number on the side of each of them
    struct shard part;
    uint64_t bytes;
    size_t first; // of a relay: the number of the piece that it must have before it sends this one
};

struct transfer_plan {
    // Pieces of one sender or relay are contiguous, and among them those to one receiver.
    struct transfer_piece *pieces;
    size_t n;
    uint64_t bytes;          // of all of them
    const char **mismatches; // one sentence each, at most TRANSFER_MISMATCHES_MAX; then there is no piece
    size_t n_mismatches;
};

// No piece has more bytes than piece_max (0 = no limit) and than one element. ERR_INVALID with all mismatches in *ret:
// tensors that one side does not have, or with another dtype or shape. ERR_LIMIT: over TRANSFER_PIECES_MAX.
int transfer_plan(const struct transfer_side *from, const struct transfer_side *to, uint64_t piece_max, struct arena *a,
                  struct transfer_plan *ret, struct err *err);
// The pieces that one rank sends or relays to another; *ret_n is their number.
const struct transfer_piece *transfer_plan_sends(const struct transfer_plan *p, uint32_t from, uint32_t to,
                                                 size_t *ret_n);
