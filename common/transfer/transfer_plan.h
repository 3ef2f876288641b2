// SPDX-License-Identifier: Apache-2.0
// How tensors get from one group to another group with a different mesh: which rank sends which block to which rank.
// Each receiver gets each of its elements once. Pure: the same arguments give the same plan on every rank, so nobody
// has to send it.
//
// An element that no sender of a node has enters the node once, and likewise a pod: one of the receivers that want it
// gets it, and relays it to the others. If several ranks could send it, the nearest ones do, and of these the one that
// has sent least. Receivers of a node relay about as much as each other; but as long as the difference is small, it is
// the same one, because each pair of ranks needs a connection.
//
// Nobody waits in a circle: a relay sends a piece on when all of the piece is there. By the plan, each piece comes from
// a sender over two relays at most. A receiver takes what comes whether or not those who want it from there are ready.
// So all that senders send arrives, then all that the first relays send, then all that the second ones send.
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
    // Those of a sender or a relay lie together, and among them those of each receiver.
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
// The pieces that one rank sends or relays to another; *ret_n of them.
const struct transfer_piece *transfer_plan_sends(const struct transfer_plan *p, uint32_t from, uint32_t to,
                                                 size_t *ret_n);
