// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/wait.h"

#include "common/base/mem.h"
#include "common/base/rand.h"

int64_t wait_of(const struct gang_memory *m, enum wait_kind kind, int64_t token, int64_t began_ms, int64_t limit_ms,
                int64_t now_ms, struct wait *ret)
{
    const struct wait *old = &m->waits[kind];
    int64_t since = old->token == token ? old->since_ms : MIN(MAX(began_ms, m->looked_ms), now_ms);
    *ret = (struct wait){token, since};
    return MIN(since + limit_ms - now_ms, limit_ms);
}

int64_t wait_left(const struct gang_memory *m, struct plan *p, enum wait_kind kind, int64_t token, int64_t began_ms,
                  int64_t limit_ms, int64_t now_ms)
{
    return wait_of(m, kind, token, began_ms, limit_ms, now_ms, &p->waits[kind]);
}

int64_t wait_backoff_ms(int64_t initial_ms, int64_t max_ms, int32_t n, uint64_t seed)
{
    int64_t ms = MIN(initial_ms, max_ms);
    for (int32_t i = 1; i < n && ms > 0 && ms < max_ms; i++)
        ms = MIN(ms * 2, max_ms);
    struct rand r;
    rand_seed(&r, seed + (uint64_t)n);
    return ms + (int64_t)rand_below(&r, (uint64_t)ms / 10 + 1);
}
