// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/pulse.h"

#include "common/base/mem.h"

#include <limits.h>

struct pulse pulse_new(int64_t limit_ms)
{
    return (struct pulse){.every_ms = limit_ms > 0 ? MAX(limit_ms / (PULSE_QUESTIONS + 1), (int64_t)1) : 0};
}

int pulse_wait(const struct pulse *p, int64_t now_ms, int most)
{
    if (!p->every_ms)
        return most;
    return (int)MIN(MAX(p->due_ms - now_ms, (int64_t)0), (int64_t)(most < 0 ? INT_MAX : most));
}

bool pulse_due(struct pulse *p, int64_t now_ms)
{
    if (!p->every_ms || now_ms < p->due_ms)
        return false;
    p->due_ms = now_ms + p->every_ms;
    return true;
}

bool pulse_ask(int *asked)
{
    return (*asked)++ < PULSE_QUESTIONS;
}
