// SPDX-License-Identifier: Apache-2.0
#include "worker/transfer/nccl_refusal.h"

#include "common/base/mem.h"

bool nccl_refusal_holds(const struct nccl_refusal *r, uint64_t members, int64_t now_ms)
{
    return r->wait_ms && r->members == members && now_ms < r->until_ms;
}

void nccl_refusal_add(struct nccl_refusal *r, uint64_t members, int64_t now_ms)
{
    bool again = r->wait_ms && r->members == members;
    r->wait_ms = again ? MIN(2 * r->wait_ms, (int64_t)NCCL_REFUSAL_MAX_MS) : NCCL_REFUSAL_MS;
    r->members = members;
    r->until_ms = now_ms + r->wait_ms;
}

void nccl_refusal_end(struct nccl_refusal *r, uint64_t members)
{
    if (r->members == members)
        *r = (struct nccl_refusal){.wait_ms = 0};
}
