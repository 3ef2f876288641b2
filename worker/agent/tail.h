// SPDX-License-Identifier: Apache-2.0
// The last output of a process, for lastFailure: at most 4 KiB and 80 lines.
#pragma once

#include "common/base/buf.h"

enum { TAIL_BYTES = 4096, TAIL_LINES = 80 };

struct tail { // initially all zero
    char ring[TAIL_BYTES];
    size_t at;   // where the next byte goes
    size_t used; // bytes that are kept
    bool cut;    // older output was dropped
};

void tail_add(struct tail *t, const char *data, size_t n);
// Appends what is kept to `out`: whole lines, or the end of one line that is longer than the ring.
void tail_get(const struct tail *t, struct buf *out);
