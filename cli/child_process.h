// SPDX-License-Identifier: Apache-2.0
// Runs other programs, to their end or in the background. No shell. SIGINT and SIGTERM end a wait early.
#pragma once

#include "common/base/buf.h"
#include "common/base/err.h"

#include <sys/types.h>

void process_catch_signals(void);
int process_interrupted(void); // the signal, 0 = none came

// Runs argv[0], found in PATH, with no input. Collects its output and its messages, up to their caps, then ERR_LIMIT.
// Returns its exit status (128 + N after signal N), or a negative error.
int process_capture(const char *const argv[], struct buf *out, struct buf *err_out, struct err *err);

// Starts it. *ret_fd gets its output (NULL: thrown away), err_fd its messages (-1: ours).
int process_start(const char *const argv[], pid_t *ret_pid, int *ret_fd, int err_fd, struct err *err);
// 1: it has ended, with *ret_status as above. 0: it runs.
int process_ended(pid_t pid, int *ret_status);
int process_wait(pid_t pid); // the status
void process_end(pid_t pid); // SIGTERM, and after a while SIGKILL; returns when the process is gone
