// SPDX-License-Identifier: Apache-2.0
// What each process of a group is started with, as its spec says it: the same in a cluster and without one.
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
