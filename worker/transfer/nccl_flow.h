// SPDX-License-Identifier: Apache-2.0
// The bytes that one rank sends, or gets, by NCCL, for all its pairs at once and in rounds: in each round, the next
// bytes of each pair move. Both sides of a pair walk over the same bytes in the same order, so a round of one is the
// same round of the other, and no members wait for each other in a circle. A new round begins while the last one is
// under way.
//
// Runs of bytes that are long on both sides go from their place, and to their place. Shorter ones are packed: the
// sender copies them together on its GPU, and the receiver copies them to their places.
#pragma once

#include "common/transfer/transfer_cursor.h"
#include "worker/transfer/nccl_link.h"

struct nccl_flow_sizes {
    uint64_t round;  // bytes of a pair in a round
    uint64_t packed; // runs that are shorter than this are packed
};

struct nccl_flow;

// Link and blocks are borrowed; the blocks are the sender's, or the rooms of the receiver, as `out` says. `most`:
// pairs. ERR_NOMEM: the GPU has no memory for what is packed.
int nccl_flow_new(const struct nccl_link *link, const struct blocks *blocks, bool out, size_t most,
                  const struct nccl_flow_sizes *sizes, struct nccl_flow **ret, struct err *err);
// Of a link that moves nothing any more. If the device hangs, its memory stays. Accepts NULL.
void nccl_flow_free(struct nccl_flow *f);
// The rank of the other side in the communicator. Returns the cursor of the pair, to be initialized before the first
// step.
struct transfer_cursor *nccl_flow_add(struct nccl_flow *f, int rank);
// Begins rounds, and looks which ones are done. 1: all is moved, 0: more is left. It never waits. ERR_IO: another
// member or the network has failed.
int nccl_flow_step(struct nccl_flow *f, struct err *err);
bool nccl_flow_is_over(const struct nccl_flow *f);
// Of the nth pair that was added: bytes, and pieces of the plan, that are there, or that the other side has.
uint64_t nccl_flow_moved(const struct nccl_flow *f, size_t pair);
size_t nccl_flow_pieces(const struct nccl_flow *f, size_t pair);
