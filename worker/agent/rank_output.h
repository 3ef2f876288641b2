// SPDX-License-Identifier: Apache-2.0
// Passes the output of processes on, with `[rank N] ` or another name before each line, and keeps the last lines for
// lastFailure. The agent passes the output of workers to the log of its pod. A local run passes on what the agents
// print. A slow reader of the log slows the processes down, because their pipes fill up. It never slows the loop:
// nothing here blocks, and everything is bounded.
#pragma once

#include "common/base/buf.h"
#include "common/base/loop.h"

#include <stdbool.h>

struct rank_output;
struct output_process;

// Standard output goes to `out`, standard error to `err`. The caller keeps both. They may be the same pipe.
struct rank_output *rank_output_new(struct loop *loop, int out, int err);
void rank_output_free(struct rank_output *o); // drops what is not written yet; every process must have been closed

// Opens the pipes of a process. `prefix` goes before each line. ret_fds are the ends for its standard output and error.
// The caller closes them after the process has got them. Returns NULL if there are no more descriptors.
struct output_process *rank_output_open(struct rank_output *o, const char *prefix, int ret_fds[2], struct err *err);
// From now on, `heard` gets every line of both pipes as it goes to the log, without prefix and newline.
void rank_output_follow(struct output_process *p, void (*heard)(void *ctx, const char *text, size_t len), void *ctx);
// Reads what is in the pipes now. Call this when the process has exited: its last lines then come before the line about
// its exit.
void rank_output_drain(struct output_process *p);
// Appends the end of both outputs, at most TAIL_BYTES and TAIL_LINES.
void rank_output_tail(const struct output_process *p, struct buf *out);
// The caller is done with the process. If children of the process still run, their output is forwarded until they close
// the pipes.
void rank_output_close(struct output_process *p); // accepts NULL

// Prints a line of the agent, with `[agent] ` before it. The line is dropped if the log is full.
void rank_output_say(struct rank_output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool rank_output_pending(const struct rank_output *o); // something is not written yet
