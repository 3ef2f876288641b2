// SPDX-License-Identifier: Apache-2.0
// The back end nccl: memory of NVIDIA's GPUs. A shared object of its own that is linked with neither CUDA nor NCCL:
// both are loaded when the first communicator wants them, so that one image runs on nodes with GPUs and without.
//
// Communicators of NCCL do not block here: each call returns at once, and what is under way is polled together with
// NCCL's asynchronous errors, the limit, and the word of another thread that a member was lost. In each of these cases
// the thread that uses the communicator calls ncclCommAbort(), which ends the kernels that wait.
#pragma once

#include "sdk/c/include/cadre/collective.h"
#include "worker/collective/backend.h"

CADRE_EXPORT const struct backend *cadre_backend(void); // BACKEND_SYMBOL
