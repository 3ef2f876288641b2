// SPDX-License-Identifier: Apache-2.0
// Moves the bytes that one rank sends or receives by NCCL. It moves them in rounds: in each round, the next bytes of
// each pair of this rank. Both sides of a pair walk over the same bytes in the same order. So the bytes of a pair in
// round k of one side are those in round k of the other side, and ranks never wait for each other in a circle. The next
// round begins while the last one is under way.
//
// A run of bytes that is long on both sides moves straight from its place to its place. Shorter runs are packed: the
// sender copies them together on its GPU, and the receiver copies them to their places.
#pragma once

#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/nccl_link.h"

struct nccl_flow_sizes { // the same for both sides of a pair
    uint64_t round;      // bytes of a pair in a round
    uint64_t packed;     // shorter runs are packed
    uint32_t runs;       // runs of a pair in a round, at most
};

struct nccl_flow;

// Link and blocks are borrowed. `out`: the blocks belong to a sender; otherwise they are the rooms of a receiver.
// `most`: how many pairs will be added. ERR_NOMEM: the GPU has no memory for packed runs.
int nccl_flow_new(const struct nccl_link *link, const struct blocks *blocks, bool out, size_t most,
                  const struct nccl_flow_sizes *sizes, struct nccl_flow **ret, struct err *err);
// Call this when the link is idle or dropped. If the device hangs, its memory stays until the device is done. Accepts
// NULL.
void nccl_flow_free(struct nccl_flow *f);
// Adds a pair. `rank`: of the other side in the communicator. Returns its cursor, which the caller initializes before
// the first step.
struct transfer_cursor *nccl_flow_add(struct nccl_flow *f, int rank);
// Begins rounds, and checks which ones are done, without waiting. 1: all bytes have moved, 0: more are left. ERR_IO:
// another member or the network has failed.
int nccl_flow_step(struct nccl_flow *f, struct err *err);
bool nccl_flow_is_over(const struct nccl_flow *f);
// Return how many bytes, and how many pieces of the plan, have moved completely. Pairs count from 0, as they were
// added.
uint64_t nccl_flow_moved(const struct nccl_flow *f, size_t pair);
size_t nccl_flow_pieces(const struct nccl_flow *f, size_t pair);
