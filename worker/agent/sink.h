// SPDX-License-Identifier: Apache-2.0
// The log: a file descriptor that is written without blocking, behind a bounded queue. If the reader is gone, output is
// dropped without an error. The program must ignore SIGPIPE.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"

#include <stddef.h>

enum {
    SINK_HIGH = 256 * 1024,     // the reader pauses above this
    SINK_LOW = 64 * 1024,       // and continues below this
    SINK_MAX = 4 * 1024 * 1024, // output that must not wait may fill it up to here
};

struct sink;

// The caller keeps fd. A pipe or terminal is opened again: otherwise everybody who shares it would see O_NONBLOCK. A
// socket cannot be opened again; it has O_NONBLOCK until sink_free(). `drained` is called when the queue shrinks to
// SINK_LOW after it was above SINK_HIGH, and when it becomes empty.
struct sink *sink_new(struct loop *loop, int fd, loop_fn drained, void *ctx);
void sink_free(struct sink *s); // drops what is queued; accepts NULL

// The queue. Append whole lines, then call sink_send(). The limit is SINK_MAX. Output above it is lost.
struct buf *sink_queue(struct sink *s);
void sink_send(struct sink *s);
size_t sink_queued(const struct sink *s);
