// SPDX-License-Identifier: Apache-2.0
// Splits the output of a process into lines and puts its name before each. No I/O; any bytes are fine.
#pragma once

#include "common/base/buf.h"

enum {
    LINES_MAX = 64 * 1024, // bytes of a line; a longer one goes on in the next
    LINES_PREFIX_MAX = 96,
};

struct lines {
    // Each line that is put, without prefix and end; NULL = nobody listens.
    void (*heard)(void *ctx, const char *text, size_t len);
    void *ctx;
    char prefix[LINES_PREFIX_MAX]; // "[rank 3] "
    struct buf partial;            // a line that has not ended yet
};

void lines_init(struct lines *l, const char *prefix);
void lines_done(struct lines *l);
// Appends the lines that are complete to `out`. A line for which there is no room is dropped whole.
void lines_add(struct lines *l, const char *data, size_t n, struct buf *out);
void lines_flush(struct lines *l, struct buf *out); // ends the line that has not ended
static inline bool lines_partial(const struct lines *l)
{
    return l->partial.len > 0;
}
