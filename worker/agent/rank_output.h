// SPDX-License-Identifier: Apache-2.0
// Passes the output of processes on, with `[rank N] ` or another name before each line, and keeps the last lines for
// lastFailure. The agent passes on what workers print, to the log of its pod. A local run passes on what agents print.
// A slow log reader slows the processes down (their pipes fill up), never our loop: nothing here blocks, and everything
// is bounded.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"

#include <stdbool.h>

struct output;
struct output_process;

// Standard output goes to `out`, standard error to `err`; both stay the caller's. The two may be the same pipe.
struct output *output_new(struct loop *loop, int out, int err);
void output_free(struct output *o); // drops what is not written yet; every process must have been closed

// Opens the pipes of a process. `prefix` goes before each line. ret_fds are the ends for its standard output and error;
// the caller closes them once the process has them. NULL if there are no more descriptors.
struct output_process *output_open(struct output *o, const char *prefix, int ret_fds[2], struct err *err);
// Every line of both from now on, without prefix and end, as it goes to the log.
void output_follow(struct output_process *p, void (*heard)(void *ctx, const char *text, size_t len), void *ctx);
// Reads what is there now, for when the process has exited: its last words come before what is said about it.
void output_drain(struct output_process *p);
// The last of both, at most TAIL_BYTES and TAIL_LINES.
void output_tail(const struct output_process *p, struct buf *out);
// What children that outlive the process still print is forwarded until they close the pipe.
void output_close(struct output_process *p); // accepts NULL

// A line of the agent's own, `[agent] ` in front. Dropped where the log is full.
void output_say(struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool output_pending(const struct output *o); // something is not written yet
