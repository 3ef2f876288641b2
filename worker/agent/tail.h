// SPDX-License-Identifier: Apache-2.0
// The last output of a process, for lastFailure: at most 4 KiB and 80 lines.
#pragma once

#include "common/base/buf.h"

enum { TAIL_BYTES = 4096, TAIL_LINES = 80 };

struct tail { // all zero to begin with
    char ring[TAIL_BYTES];
    size_t at;   // where the next byte goes
    size_t used; // bytes that are there
    bool cut;    // something older was there
};

void tail_add(struct tail *t, const char *data, size_t n);
// Appends what is there to `out`: whole lines, or the end of one that is longer than all that is kept.
void tail_get(const struct tail *t, struct buf *out);
