// SPDX-License-Identifier: Apache-2.0
// How the bytes of each sender get to each receiver. Each receiver tells the center what it needs, and the center tells
// all members:
//
//   NEEDS   a byte for each sender (enum mover_way), and the receiver's place with the room that senders write to
//   GO      u32 witness (a member), the NEEDS of all receivers; the center lets pairs use NCCL in place of a connection
#pragma once

#include "worker/transfer/mover.h"
#include "worker/transfer/nccl_join.h"
#include "worker/transfer/participant.h"

// Returns when this member knows the ways of all bytes, or when it was decided to keep the old weights. `m`: only a
// receiver needs it. `witness`: only the center chooses it.
int routes_agree(struct participant *p, const struct mover *m, struct nccl_join *j, int witness, struct err *err);
int routes_witness(const struct participant *p);
enum mover_way routes_way(const struct participant *p, int receiver, int sender);
void routes_place(const struct participant *p, int receiver, struct window_place *ret);
// Returns how many receivers need a connection to this sender, and how many of them have a lower index than `receiver`.
int routes_connected(const struct participant *p, int sender, int receiver, int *ret_before);
