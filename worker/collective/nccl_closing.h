// SPDX-License-Identifier: Apache-2.0
// The end of a communicator of NCCL. NCCL frees memory of the GPU there. If the GPU hangs, that waits without a limit,
// so a thread of its own does it, and the owner of the communicator waits for that thread only so long.
#pragma once

#include "worker/collective/nccl_comm.h"
#include "worker/device/device.h"

enum { NCCL_CLOSING_MS = 5000 };

struct nccl_closing;

// Begins, and takes the handle of the communicator, which may have none. The owner keeps the device open, and the
// stream, until nccl_closing_end() calls `then`. `aborts`: NCCL also ends what is under way on the device. Otherwise
// the communicator is idle and finalized.
struct nccl_closing *nccl_closing_new(struct nccl_comm *c, bool aborts, struct device *d);
// Waits until NCCL is done, at most until NCCL_CLOSING_MS after the beginning. Returns whether it is.
bool nccl_closing_wait(struct nccl_closing *n);
// Waits like that. When NCCL is done, the thread calls then(ctx), which frees what the communicator has used. This
// function waits for that, too, but for both together NCCL_CLOSING_MS at most. The closing is freed afterwards. After
// the limit, `then` may run at any later time, so it uses nothing of the caller.
void nccl_closing_end(struct nccl_closing *n, void (*then)(void *ctx), void *ctx);
