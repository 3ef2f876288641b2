// SPDX-License-Identifier: Apache-2.0
// How tensors get from one group to another group with a different mesh: which rank sends which block to which rank.
// Each receiver gets each of its elements once, from one sender. If several ranks have an element, those that have sent
// least send it. Pure: the same arguments give the same plan on every rank, so nobody has to send it.
#pragma once

#include "common/base/arena.h"
#include "common/transfer/shard.h"
#include "common/wire/safetensors.h"

enum { TRANSFER_PIECES_MAX = 1 << 22, TRANSFER_MISMATCHES_MAX = 1000 };

struct transfer_tensor {
    const char *name;
    enum safetensors_dtype dtype;
    const uint64_t *shape; // of the whole tensor
    size_t n_dims;
    const int *split; // for each dimension of the mesh, as shard_of_rank() takes it
};

struct transfer_side {
    const char *name; // for messages: "actor"
    const struct grid *mesh;
    const struct transfer_tensor *tensors;
    size_t n;
};

struct transfer_piece {
    uint32_t from, to;          // ranks, each of its side
    size_t source, destination; // the tensor's number on each side
    struct shard part;
    uint64_t bytes;
};

struct transfer_plan {
    // Those of a sender lie together, each sender's beginning with another receiver: few ranks receive from many at
    // once.
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
// The pieces that one rank sends; *ret_n of them.
const struct transfer_piece *transfer_plan_sends(const struct transfer_plan *p, uint32_t rank, size_t *ret_n);
