// SPDX-License-Identifier: Apache-2.0
// The center remembers which processes could not join a communicator of NCCL, so that not each of their transfers waits
// for them. It asks them again after some time, which doubles with each failure until they have joined one. It asks
// other processes at once: also if a rank among them has started again. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { NCCL_REFUSAL_MS = 10 * 60 * 1000, NCCL_REFUSAL_MAX_MS = 24 * 60 * 60 * 1000 };

struct nccl_refusal { // zeroed = none
    uint64_t members; // a hash of the processes
    int64_t until_ms, wait_ms;
};

bool nccl_refusal_holds(const struct nccl_refusal *r, uint64_t members, int64_t now_ms);
void nccl_refusal_add(struct nccl_refusal *r, uint64_t members, int64_t now_ms); // they could not join
void nccl_refusal_end(struct nccl_refusal *r, uint64_t members);                 // they have joined
