// SPDX-License-Identifier: Apache-2.0
// How the bytes of each sender get to each receiver. Each receiver says what it needs, and the center tells all
// members:
//
//   NEEDS   a byte for each sender (enum mover_way), and the receiver's place with the room that senders write to
//   GO      u32 witness (a member), the NEEDS of all receivers; the center lets pairs use NCCL in place of a connection
#pragma once

#include "worker/transfer/mover.h"
#include "worker/transfer/nccl_join.h"
#include "worker/transfer/participant.h"

// Until all members know it, or it was decided that the old weights stay. `m`: of a receiver. `witness`: what the
// center chooses.
int routes_agree(struct participant *p, const struct mover *m, struct nccl_join *j, int witness, struct err *err);
int routes_witness(const struct participant *p);
enum mover_way routes_way(const struct participant *p, int receiver, int sender);
void routes_place(const struct participant *p, int receiver, struct window_place *ret);
// Of the receivers that need a connection to a sender: their number, and how many come before this one.
int routes_connected(const struct participant *p, int sender, int receiver, int *ret_before);
