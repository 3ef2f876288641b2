// SPDX-License-Identifier: Apache-2.0
// What a spec says about starting a process. The same in a cluster and in a local run.
#pragma once

#include "operator/api/workergroup.h"

struct launch {
    const char **command; // NULL-terminated; empty: the container's own command
    size_t n_command;
    struct worker_env *env; // plain values; those that come from elsewhere in the cluster are the container's
    size_t n_env;
};

// Strings are those of the spec, the lists in the arena.
void launch_of(const struct worker_spec *s, struct arena *a, struct launch *ret);
