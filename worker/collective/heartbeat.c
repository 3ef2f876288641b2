// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/heartbeat.h"

#include "common/base/mem.h"

#include <limits.h>

struct heartbeat heartbeat_new(int64_t limit_ms)
{
    return (struct heartbeat){.every_ms = limit_ms > 0 ? MAX(limit_ms / (HEARTBEAT_QUESTIONS + 1), (int64_t)1) : 0};
}

int heartbeat_wait(const struct heartbeat *p, int64_t now_ms, int most)
{
    if (!p->every_ms)
        return most;
    return (int)MIN(MAX(p->due_ms - now_ms, (int64_t)0), (int64_t)(most < 0 ? INT_MAX : most));
}

bool heartbeat_due(struct heartbeat *p, int64_t now_ms)
{
    if (!p->every_ms || now_ms < p->due_ms)
        return false;
    p->due_ms = now_ms + p->every_ms;
    return true;
}

bool heartbeat_ask(int *asked)
{
    return (*asked)++ < HEARTBEAT_QUESTIONS;
}
