// SPDX-License-Identifier: Apache-2.0
// One transfer of weights, on one of the ranks that take part in it: all ranks of the group that receives, and of the
// group that sends. Every rank calls it with the same id. It returns when the rank has its new weights, or keeps the
// old ones: so do all other receivers (common/transfer/commit.h).
//
// A receiver reads the memory of senders in the same machine and container, or they write to its memory. To others it
// has connections, or both use NCCL, if all weights of both are on GPUs. What no sender in its machine has it may get
// from another receiver there, which relays it (common/transfer/transfer_plan.h): it reads the memory of that one, or
// has a connection to it. New weights lie beside the old ones until all receivers have all of theirs (back_buffer.h),
// so what a relay has received stays where it is as long as others may want it.
#pragma once

#include "common/transfer/transfer_side.h"
#include "worker/transfer/back_buffer.h"
#include "worker/transfer/contacts.h"
#include "worker/transfer/mover.h"
#include "worker/transfer/nccl_join.h"
#include "worker/transfer/participant.h"

enum { RESHARD_PIECE_MAX = 32 << 20 };

struct reshard_rendezvous { // of members at one of them: those that come have indexes 1 to n - 1
    uint64_t id;
    int n;
    int64_t limit_ms;
    bool (*stop)(void *ctx); // asked several times a second: it is of no use any more
    void *ctx;
};

struct reshard_ways { // how members reach each other; errors as of a communicator
    // Here: links[1] to links[n - 1], -1 where somebody has not come.
    int (*host)(void *ctx, const struct reshard_rendezvous *m, int *links, struct err *err);
    int (*join)(void *ctx, const struct reshard_rendezvous *m, int member, int index, int *link, struct err *err);
    void *ctx;
};

struct reshard_config {
    uint64_t id; // the ids behind it are also used, one for each member and one more
    struct participant_config participant;
    uint64_t piece_max;              // bytes that are planned as one; RESHARD_PIECE_MAX, the same for all members
    struct transfer_side side;       // of the group of this rank
    struct blocks blocks;            // of this rank, one for each tensor of the side
    void *stream;                    // of the program, whose work on the GPU comes first; NULL = the default one
    struct back_buffer *back_buffer; // of a receiver
    struct window_place place;       // of this process: window_place()
    bool direct;                     // others may read the memory of this rank, and write to its room
    const char *groups[2];           // names: the sender's, the receiver's
    struct mover_progress *progress;
    const struct mover_sizes *sizes; // NULL = mover_sizes
    struct reshard_ways ways;
    struct contacts *contacts; // what is kept there after new weights were taken
    struct nccl_link *nccl;    // its communicator of NCCL is kept there; NULL = this member uses none
    int64_t nccl_limit_ms;     // to make one: NCCL_JOIN_MS
    uint64_t known_by;         // of contacts: if they fit, nobody meets at the center or the witness; 0 = they meet
};

struct reshard_result {
    uint64_t direct, sent; // bytes that this receiver got from memory to memory, and over connections or by NCCL
    size_t copied;         // of them, bytes that were copied once more in the end
    const char *refusal;   // of the center: why members that could use NCCL do not; NULL = no reason
    const char **problems; // tensors do not match: all that is wrong; nothing was moved
    size_t n_problems;
};

// `ret` is in the arena. 0: the weights have arrived, or there are problems.
int reshard(const struct reshard_config *config, struct arena *a, struct reshard_result *ret, struct err *err);
