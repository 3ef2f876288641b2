// SPDX-License-Identifier: Apache-2.0
// Members of a transfer join a communicator of NCCL before anything moves, or all of them use connections:
//
//   GPU      member -> center   u32 format, then struct nccl_fact: u32 version, 16 bytes UUID of its GPU, u64 number,
//                               u32 rank, u32 n, u64 process
//   JOIN     center -> member   join_message.h
//   JOINED   member -> center   the member has joined, or why it could not
//
// A member with another version of Cadre does not send GPU, or sends another format. It uses connections. If one member
// cannot join, no member uses NCCL, and the center does not ask the same processes again for a while (nccl_refusal.h).
// GO (routes.h) says which pairs use NCCL.
#pragma once

#include "worker/transfer/join_message.h"
#include "worker/transfer/participant.h"

enum { NCCL_JOIN_MS = 30 * 1000 };

struct nccl_join_config {
    struct nccl_link *link;      // NULL = this member is not to use NCCL
    const struct blocks *blocks; // of a sender, or the rooms of a receiver
    uint64_t round, packed;      // bytes that a rank moves in a round; nccl_flow_sizes.packed
    uint64_t number;             // of the transfer; a new communicator gets the same number
    int64_t limit_ms;            // for joining, NCCL_JOIN_MS; it never takes more than a third of the time that is left
};

struct nccl_join { // of one transfer
    struct nccl_join_config config;
    struct nccl_flow *flow; // NULL = this member does not use NCCL
    char *refusal;          // at the center: why members that could use NCCL do not; NULL = no reason
    // private
    bool able, asked, joins;
    struct join_message join; // once the member is asked
    int64_t until_ms;
    int n_asked;        // members that the center has asked
    uint64_t processes; // a hash of these
};

void nccl_join_init(struct nccl_join *j, const struct nccl_join_config *config);
// Call this after the transfer. `keeps`: it has succeeded, and the communicator stays for the next transfer.
void nccl_join_done(struct nccl_join *j, bool keeps);
void nccl_join_say_gpu(struct nccl_join *j, struct participant *p, const struct blocks *own);
// The center asks the members that need a communicator. `connects`: as in struct nccl_question. False: no member needs
// it.
bool nccl_join_ask(struct nccl_join *j, struct participant *p, const bool *connects);
// A member does what the center has asked for, without waiting. Between two calls, it may sleep nccl_join_wait_ms().
void nccl_join_step(struct nccl_join *j, struct participant *p);
int nccl_join_wait_ms(const struct nccl_join *j);
bool nccl_join_is_answered(const struct nccl_join *j,
                           const struct participant *p); // by all members, or by one that cannot
// The center calls this after that. True: all members have joined, and these two are among them.
bool nccl_join_allows(const struct nccl_join *j, const struct participant *p, int member, int other);
// Call this when GO says whether this member uses NCCL.
void nccl_join_end(struct nccl_join *j, struct participant *p, bool uses);
uint32_t nccl_join_pairs(const struct nccl_join *j);       // of this member; 0 = it has not joined
int nccl_join_rank(const struct nccl_join *j, int member); // in the communicator
