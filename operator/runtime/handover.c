// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/handover.h"

bool handover_due(struct handover *h, bool sees_less, int64_t now_ms)
{
    if (!sees_less) {
        h->since_ms = 0;
        return false;
    }
    if (!h->since_ms)
        h->since_ms = now_ms;
    if (now_ms - h->since_ms < HANDOVER_AFTER_MS || (h->released_ms && now_ms - h->released_ms < HANDOVER_AGAIN_MS))
        return false;
    *h = (struct handover){.released_ms = now_ms};
    return true;
}
