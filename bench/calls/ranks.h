// SPDX-License-Identifier: Apache-2.0
// Many ranks of a group in one process, each with a connection of its own: for sizes at which real processes would be
// what is measured. They answer at once, in this order: `take` with 0, `echo` with its arguments.
#pragma once

#include <stdint.h>
#include <sys/types.h>

// Forks, and returns when ranks [first, first + n) are welcomed; exits with a message where that fails.
pid_t ranks_start(int port, const char *group, uint32_t first, uint32_t n);
void ranks_stop(pid_t pid);
