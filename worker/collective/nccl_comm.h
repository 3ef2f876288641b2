// SPDX-License-Identifier: Apache-2.0
// A communicator of NCCL that does not block: each call returns at once, and its owner polls until NCCL has begun with
// the work. One thread at a time, with the context of the GPU.
#pragma once

#include "worker/collective/nccl_library.h"

struct nccl_comm {
    const struct nccl_library *f;
    void *handle; // NULL = there is none; nccl_closing.h ends it
};

// Begins to make a communicator of n members; nccl_comm_poll() says when it is there. ERR_IO.
int nccl_comm_begin(struct nccl_comm *c, int n, int rank, const struct nccl_id *id, struct err *err);
// After any call: 1 = NCCL has put the work on its stream, or has made the communicator; 0 = not yet. ERR_IO: the call
// has failed, or an error has come from another member. `what` is for the message.
int nccl_comm_poll(const struct nccl_comm *c, const char *what, struct err *err);
// ERR_IO with NCCL's words for the result of a call.
int nccl_comm_fail(const struct nccl_comm *c, int result, const char *what, struct err *err);
