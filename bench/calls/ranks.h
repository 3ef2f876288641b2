// SPDX-License-Identifier: Apache-2.0
// Many ranks of a group in one process, each with its own connection. With so many real processes, the benchmark would
// measure the processes. The ranks answer at once, in order: `take` with 0, `echo` with its arguments.
#pragma once

#include <stdint.h>
#include <sys/types.h>

// Forks, and returns when the proxy has welcomed ranks [first, first + n). Exits with a message if that fails.
pid_t ranks_start(int port, const char *group, uint32_t first, uint32_t n);
void ranks_stop(pid_t pid);
