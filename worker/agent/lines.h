// SPDX-License-Identifier: Apache-2.0
// Splits the output of a process into lines, and puts the name of the process before each. No I/O. Takes any bytes.
#pragma once

#include "common/base/buf.h"

enum {
    LINES_MAX = 64 * 1024, // bytes of a line; the rest of a longer line becomes the next line
    LINES_PREFIX_MAX = 96,
};

struct lines {
    // Called with each line that is appended, without prefix and newline. NULL = nobody listens.
    void (*heard)(void *ctx, const char *text, size_t len);
    void *ctx;
    char prefix[LINES_PREFIX_MAX]; // "[rank 3] "
    struct buf partial;            // a line that is not complete yet
};

void lines_init(struct lines *l, const char *prefix);
void lines_done(struct lines *l);
// Appends the complete lines to `out`. If there is no room for a line, all of it is dropped.
void lines_add(struct lines *l, const char *data, size_t n, struct buf *out);
void lines_flush(struct lines *l, struct buf *out); // completes the last line, if there is one
static inline bool lines_partial(const struct lines *l)
{
    return l->partial.len > 0;
}
