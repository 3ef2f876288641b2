// SPDX-License-Identifier: Apache-2.0
// Whether the kernel killed a process of this container because its memory was used up. The cgroup counts such kills.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OOM_CGROUP "/sys/fs/cgroup"

// How often it did so far, by the files of cgroup v2 or v1 below `root`, which are the container's own; -1 = they do
// not tell.
int64_t oom_kills(const char *root);

// Whether there was one since the last look. *known: of oom_kills(OOM_CGROUP).
bool oom_look(int64_t *known);
