// SPDX-License-Identifier: Apache-2.0
// Which members of a transfer are in a communicator of NCCL, so that the bytes between them go by it. Pure: the center
// chooses, by what all members have said of themselves.
//
// Only pairs that would need a connection use NCCL. A communicator cannot have two members with one GPU, so both of
// them stay outside. It needs one version of NCCL, so nobody uses it if versions differ.
#pragma once

#include "worker/device/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nccl_fact {    // of a member
    uint32_t version; // of its NCCL; 0 = it has none, or not all of its weights are on a GPU
    unsigned char gpu[DEVICE_UUID_SIZE];
    uint64_t number;  // of the communicator that it has kept; 0 = none
    uint32_t rank, n; // its rank there, and how many members that has
};

struct nccl_question {
    int n_receivers, n_senders;    // members are receivers, then senders
    const struct nccl_fact *facts; // of the members
    const bool *connects;          // of receiver r and sender s at [r * n_senders + s]: they need a connection
};

struct nccl_choice {
    int n;           // members of the communicator; 0 = nobody uses NCCL
    uint64_t number; // of the one that all of them have kept; 0 = a new one is made
    int *ranks;      // of each member, there; -1 = it is not in it
    int differs;     // a member that has another version of NCCL than `from` has; -1 = none
    int from;
};

// `ranks` are the caller's, one for each member.
void nccl_choose(const struct nccl_question *q, int *ranks, struct nccl_choice *ret);
bool nccl_choice_has(const struct nccl_question *q, const struct nccl_choice *c, int receiver, int sender);
// How many pairs of this member go by NCCL.
int nccl_choice_pairs(const struct nccl_question *q, const struct nccl_choice *c, int member);
