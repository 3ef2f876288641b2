// SPDX-License-Identifier: Apache-2.0
// How tensors get from one group to another group with a different mesh: which rank sends which block to which rank.
// Each receiver gets each of its elements once, from one sender. If several ranks have an element, those that have sent
// least send it. Pure: the same arguments give the same plan on every rank, so nobody has to send it.
#pragma once

#include "common/base/arena.h"
#include "common/transfer/transfer_side.h"

enum { TRANSFER_PIECES_MAX = 1 << 22, TRANSFER_MISMATCHES_MAX = 1000 };

struct transfer_piece {
    uint32_t from, to;          // ranks, each of its side
    size_t source, destination; // the tensor's number on each side
    struct shard part;
    uint64_t bytes;
};

struct transfer_plan {
    // Those of a sender lie together, and among them those of each receiver.
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
// The pieces that one rank sends to another; *ret_n of them.
const struct transfer_piece *transfer_plan_sends(const struct transfer_plan *p, uint32_t from, uint32_t to,
                                                 size_t *ret_n);
