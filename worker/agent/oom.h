// SPDX-License-Identifier: Apache-2.0
// Finds out whether the kernel killed a process of this container because the memory was used up. The cgroup counts
// such kills.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OOM_CGROUP "/sys/fs/cgroup"

// Returns the number of kills so far, from the files of cgroup v2 or v1 below `root`. They are the container's own.
// Returns -1 if the files do not tell.
int64_t oom_kills(const char *root);

// Returns true if there was a kill since the last call. *known: the last value of oom_kills(OOM_CGROUP); it is updated.
bool oom_look(int64_t *known);
