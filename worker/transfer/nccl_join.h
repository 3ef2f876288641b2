// SPDX-License-Identifier: Apache-2.0
// Members of a transfer join a communicator of NCCL before anything moves, or all of them use connections:
//
//   GPU      member -> center   what it says of itself (struct nccl_fact): u32 format, u32 version, the UUID of its
//   GPU,
//                               u64 number, u32 rank, u32 n
//   JOIN     center -> member   u64 number of the communicator, u32 n, u32 pairs of this member, u64 bytes of a round,
//                               the unique id, u32 rank of each member of the transfer, all ones = it is not in it
//   JOINED   member -> center   it has it, or why not
//
// A member of another version of Cadre does not say GPU, or says another format: it uses connections. If somebody
// cannot join, nobody uses NCCL, and those that were asked do not say GPU again. The center says in GO (routes.h) which
// pairs go by NCCL.
#pragma once

#include "worker/transfer/nccl_flow.h"
#include "worker/transfer/participant.h"

enum { NCCL_JOIN_MS = 30 * 1000 }; // for joining

struct nccl_join_config {
    struct nccl_link *link;      // NULL = this member wants no NCCL
    const struct blocks *blocks; // of the sender, or the rooms of the receiver
    uint64_t round, packed;      // bytes: what a rank moves in a round, and nccl_flow_sizes.packed
    uint64_t number;             // of the transfer, and of a communicator that is made for it
    int64_t limit_ms;            // for joining; a third of the transfer's time at most
};

struct nccl_join { // of one transfer
    struct nccl_join_config config;
    struct nccl_flow *flow; // NULL = this member does not use NCCL
    char *refusal;          // at the center: why members that could use NCCL do not; NULL = no reason
    // private
    bool able, asked, joins;
    int *ranks; // of the members, in the communicator; -1 = not in it
    uint64_t round;
    uint32_t pairs;
    int64_t until_ms;
    int n_asked; // by the center
};

void nccl_join_init(struct nccl_join *j, const struct nccl_join_config *config);
// After the transfer. `keeps`: all have the new weights, and the communicator stays for the next transfer.
void nccl_join_done(struct nccl_join *j, bool keeps);
void nccl_join_say_gpu(struct nccl_join *j, struct participant *p, const struct blocks *own);
// The center asks those that need it; `connects` as in struct nccl_question. False: nobody.
bool nccl_join_ask(struct nccl_join *j, struct participant *p, const bool *connects);
// A member does what the center has asked for, without waiting. Between two calls, it may sleep so many ms.
void nccl_join_step(struct nccl_join *j, struct participant *p);
int nccl_join_wait_ms(const struct nccl_join *j);
bool nccl_join_is_answered(const struct nccl_join *j, const struct participant *p); // to the center, by all, or by no
// Of the center, then: these two members have joined, as all have.
bool nccl_join_allows(const struct nccl_join *j, const struct participant *p, int member, int other);
// The center has said whether this member uses it.
void nccl_join_end(struct nccl_join *j, struct participant *p, bool uses);
uint32_t nccl_join_pairs(const struct nccl_join *j); // of this member, that it is ready for; 0 = it has not joined
int nccl_join_rank(const struct nccl_join *j, int member); // in the communicator
