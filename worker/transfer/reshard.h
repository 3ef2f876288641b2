// SPDX-License-Identifier: Apache-2.0
// One transfer of weights, on one of the ranks of the two groups. All ranks of both groups call reshard() with the same
// id. It returns when the rank has its new weights, or keeps the old ones. All receivers do the same
// (common/transfer/commit.h).
//
// A receiver reads the memory of senders on the same machine and in the same container, or they write to its memory.
// Other pairs use NCCL if all weights of both are on GPUs, and connections otherwise. If no sender on its machine has a
// piece, a receiver may get it from another receiver there, a relay (common/transfer/transfer_plan.h): it reads the
// memory of the relay, or has a connection to it. New weights lie beside the old ones until all receivers have all of
// theirs (back_buffer.h), so the pieces of a relay stay in place as long as others may want them.
#pragma once

#include "common/transfer/transfer_side.h"
#include "worker/transfer/back_buffer.h"
#include "worker/transfer/idle_connections.h"
#include "worker/transfer/mover.h"
#include "worker/transfer/nccl_join.h"
#include "worker/transfer/participant.h"

enum { RESHARD_PIECE_MAX = 32 << 20 };

struct reshard_rendezvous { // members 1 to n - 1 of it connect to its host, which has index 0
    uint64_t id;
    int n;
    int64_t limit_ms;
    bool (*stop)(void *ctx); // called several times a second; true = the rendezvous has become useless
    void *ctx;
};

struct reshard_ways { // how members reach each other; the errors are the same as of a communicator
    // Waits here for the others. It fills links[1] to links[n - 1] with connections, -1 = that member has not come. It
    // fails with ERR_CANCELED if `stop` returned true before all had come.
    int (*host)(void *ctx, const struct reshard_rendezvous *m, int *links, struct err *err);
    int (*join)(void *ctx, const struct reshard_rendezvous *m, int member, int index, int *link, struct err *err);
    void *ctx;
};

struct reshard_config {
    uint64_t id; // the next ids are used, too: one for each member, and one more
    struct participant_config participant;
    uint64_t piece_max;              // bytes of a piece of the plan; RESHARD_PIECE_MAX, and the same for all members
    struct transfer_side side;       // of the group of this rank
    struct blocks blocks;            // of this rank, one for each tensor of the side
    void *stream;                    // of the program; the transfer waits for its work; NULL = the default stream
    struct back_buffer *back_buffer; // of a receiver
    struct window_place place;       // of this process: window_place()
    bool direct;                     // other ranks may read the memory of this rank, and write to its rooms
    const char *groups[2];           // names of the sending group and of the receiving group
    struct mover_progress *progress;
    const struct mover_sizes *sizes; // NULL = mover_sizes
    struct reshard_ways ways;
    struct idle_connections *idle; // keeps the connections after new weights were taken
    struct nccl_link *nccl;        // keeps the communicator of NCCL; NULL = this member does not use NCCL
    int64_t nccl_limit_ms;         // for making one: NCCL_JOIN_MS
    uint64_t known_by;             // the transfer whose connections all members have; 0 = they meet at the center
};

struct reshard_result {
    struct mover_bytes bytes;
    size_t copied;         // of these bytes, those that were copied once more in the end
    const char *refusal;   // at the center: why members that could use NCCL do not; NULL = no reason
    const char **problems; // all differences between the tensors; then nothing was moved
    size_t n_problems;
};

// `ret` is in the arena. 0: the weights have arrived, or there are problems.
int reshard(const struct reshard_config *config, struct arena *a, struct reshard_result *ret, struct err *err);
