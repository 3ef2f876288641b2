// SPDX-License-Identifier: Apache-2.0
// The communicator of NCCL that a member keeps for its next transfers, as it keeps its connections
// (idle_connections.h). Making one takes about a second, and memory of the GPU. One thread at a time uses a link.
#pragma once

#include "worker/collective/nccl_comm.h"
#include "worker/transfer/blocks.h"
#include "worker/transfer/nccl_choice.h"
#include "worker/transfer/nccl_refusal.h"

struct nccl_link {   // zeroed = none
    uint64_t number; // 0 = none
    int rank, n;
    struct nccl_refusal refusal; // of the center
    // private
    uint64_t process; // random; 0 = not chosen yet
    struct device *device;
    void *stream;
    struct nccl_comm comm;
};

// Returns the facts about this member. False: it cannot use NCCL. The caller is inside of the device.
bool nccl_link_fact(struct nccl_link *l, const struct blocks *b, struct nccl_fact *ret);
int nccl_link_unique_id(struct nccl_id *ret, struct err *err); // the center makes it
// Begins to make a communicator, which replaces the one that is there. ERR_IO, or an error of the device.
int nccl_link_begin(struct nccl_link *l, uint64_t number, int rank, int n, const struct nccl_id *id, struct err *err);
// 1: NCCL has made the communicator, or has begun with the last call; 0: not yet. ERR_IO.
int nccl_link_poll(const struct nccl_link *l, const char *what, struct err *err);
// Ends the work of the communicator, and frees it. It waits for NCCL at most NCCL_CLOSING_MS (nccl_closing.h). `b`: of
// a member that is inside of the device. A later wait for its copies then also waits for the rest of the stream. NULL =
// the communicator is idle.
void nccl_link_drop(struct nccl_link *l, const struct blocks *b);
