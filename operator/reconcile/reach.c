// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/reach.h"

#include "common/base/mem.h"

enum {
    HEARD_SOON_MS = 1000,      // a living peer speaks within a heartbeat
    LOOK_AGAIN_MS = 10 * 1000, // nobody tells a group that an agent of another group has come
    REDIAL_MS = 15 * 1000,     // an agent that was refused connects again within 10 s
};

// Time until this peer can have been heard after end_ms; 0 = it was heard.
static int64_t left_ms(const struct connected_peer *w, int64_t end_ms, int64_t limit_ms, int64_t now_ms)
{
    int64_t left = MIN(w->since_ms + limit_ms - now_ms, limit_ms);
    if (left > 0)
        return left;
    return w->heard_ms >= end_ms ? 0 : HEARD_SOON_MS;
}

enum reach_verdict reach_verdict(const struct reach *r, size_t silent, int64_t since_ms, int64_t limit_ms,
                                 int64_t now_ms, int64_t *ret_ms)
{
    bool alone = r->expected <= silent && !r->n_agents;
    const struct connected_peer *all = alone ? r->replicas : r->agents;
    size_t n = alone ? r->n_replicas : r->n_agents;
    int64_t dialed_ms = MAX(limit_ms, (int64_t)REDIAL_MS),
            end_ms = MAX(since_ms + limit_ms, r->listening_ms + dialed_ms);
    int64_t left = MIN(end_ms - now_ms, dialed_ms);
    *ret_ms = MIN(limit_ms, (int64_t)LOOK_AGAIN_MS);
    if (!r->listening_ms)
        return REACH_NOBODY;
    if (left > 0) {
        *ret_ms = left;
        return REACH_NOT_YET;
    }
    for (size_t i = 0; i < n; i++) {
        left = left_ms(&all[i], end_ms, limit_ms, now_ms);
        if (left <= 0)
            return REACH_COUNTS;
        *ret_ms = i ? MIN(*ret_ms, left) : left;
    }
    return n ? REACH_NOT_YET : REACH_NOBODY;
}
