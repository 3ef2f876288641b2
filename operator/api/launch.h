// SPDX-License-Identifier: Apache-2.0
// The part of a spec that says how to start a process. It is the same in a cluster and in a local run.
#pragma once

#include "operator/api/workergroup.h"

struct launch {
    const char **command; // NULL-terminated; empty: the container's own command
    size_t n_command;
    struct worker_env *env; // plain values only; the container gets those with a value_from
    size_t n_env;
};

// The strings belong to the spec, the lists to the arena.
void launch_of(const struct worker_spec *s, struct arena *a, struct launch *ret);
