// SPDX-License-Identifier: Apache-2.0
// The choice of the members of a transfer that join a communicator of NCCL. Pure: the center chooses, with the facts
// that all members have told it.
//
// Only pairs that would need a connection use NCCL. A communicator cannot have two members on one GPU, so both of them
// stay outside. All its members need the same version of NCCL, so no member uses it if versions differ.
#pragma once

#include "worker/device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nccl_fact {    // of a member
    uint32_t version; // of its NCCL; 0 = it has none, or some of its weights are not on a GPU
    unsigned char gpu[DEVICE_UUID_SIZE];
    uint64_t number;  // of the communicator that it has kept; 0 = none
    uint32_t rank, n; // its rank in it, and the number of its members
    uint64_t process; // a random number: a rank that has started again has another one
};

struct nccl_question {
    int n_receivers, n_senders;    // the receivers are the first members; the senders follow
    const struct nccl_fact *facts; // of the members
    const bool *connects;          // [r * n_senders + s]: receiver r needs a connection to sender s
};

struct nccl_choice {
    int n;           // members that use NCCL; 0 = no member does
    int size;        // of the communicator: one that they have kept may have other members, too
    uint64_t number; // of the communicator that all of them have kept; 0 = they need a new one
    int *ranks;      // the rank of each member of the transfer; -1 = it stays outside
    int differs;     // a member with another version of NCCL than the member `from`; -1 = none
    int from;
};

// The caller owns `ranks`, which has one for each member.
void nccl_choose(const struct nccl_question *q, int *ranks, struct nccl_choice *ret);
bool nccl_choice_has(const struct nccl_question *q, const struct nccl_choice *c, int receiver, int sender);
// Returns how many pairs of this member use NCCL.
int nccl_choice_pairs(const struct nccl_question *q, const struct nccl_choice *c, int member);
