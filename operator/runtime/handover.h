// SPDX-License-Identifier: Apache-2.0
// Decides when a leader releases its Lease, so that a replica that sees more peers can lead. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
    HANDOVER_AFTER_MS = 10 * 1000,     // another replica must see more during all this time
    HANDOVER_AGAIN_MS = 5 * 60 * 1000, // between two handovers, because the first may not have helped
};

struct handover {
    int64_t since_ms, released_ms; // monotonic; 0 = never
};

// Returns true if the Lease must be released now. Call it often. `sees_less`: this replica leads, and another replica
// sees all that it sees and more.
bool handover_due(struct handover *h, bool sees_less, int64_t now_ms);
