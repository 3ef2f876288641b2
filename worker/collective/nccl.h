// SPDX-License-Identifier: Apache-2.0
// The back end nccl: memory of NVIDIA GPUs. A shared object that links neither CUDA nor NCCL. The first communicator
// loads both, so that one image runs on nodes with and without GPUs.
//
// Communicators of NCCL do not block here. Each call returns at once. The thread that uses the communicator then polls
// for the end of the work, together with NCCL's asynchronous errors, the limit, and another thread's report of a lost
// member. If one of the last three comes first, it aborts the communicator (nccl_closing.h), which ends the waiting
// kernels. On a stream of the program, wait() does that. Where no thread polls, the one that reports the lost member
// aborts.
#pragma once

#include "sdk/c/include/cadre/collective.h"
#include "worker/collective/backend.h"

CADRE_EXPORT const struct backend *cadre_backend(void); // BACKEND_SYMBOL
