// SPDX-License-Identifier: Apache-2.0
// The log: a file descriptor that is written without blocking, behind a bounded queue. If the reader is gone, output is
// dropped without an error. SIGPIPE must be ignored.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"

#include <stddef.h>

enum {
    SINK_HIGH = 256 * 1024,     // the reader pauses above this
    SINK_LOW = 64 * 1024,       // and goes on below this
    SINK_MAX = 4 * 1024 * 1024, // what must not wait may fill it up to here
};

struct sink;

// fd stays the caller's. A pipe or terminal is opened again, because O_NONBLOCK would be seen by all who share it;
// where that cannot be (a socket), it has O_NONBLOCK until sink_free(). `drained` is called when the queue falls to
// SINK_LOW after it was above SINK_HIGH, and when it gets empty.
struct sink *sink_new(struct loop *loop, int fd, loop_fn drained, void *ctx);
void sink_free(struct sink *s); // drops what is queued; accepts NULL

// The queue: append whole lines to it, then sink_send(). Its cap is SINK_MAX; what goes over it is lost.
struct buf *sink_queue(struct sink *s);
void sink_send(struct sink *s);
size_t sink_queued(const struct sink *s);
