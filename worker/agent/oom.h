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

// Which kills the exits of processes have told of. All processes of a container share it.
struct oom {
    const char *root;
    int64_t told; // no other exit tells of this many first kills; some may be of children of ranks
};

// For a process that SIGKILL has ended, but not the agent's. `before`: oom_kills() when it was started. Returns true
// if there was a kill since that no other exit has told of, and tells of the first one.
bool oom_tell(struct oom *o, int64_t before);
