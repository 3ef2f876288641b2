// SPDX-License-Identifier: Apache-2.0
// Reads those parts of a pod template's container that a local run uses. It uses cJSON (docs/adr/0005), because it runs
// only once, at the start.
#pragma once

#include "common/base/arena.h"
#include "common/base/err.h"

#include <stdint.h>

struct container_variable {
    const char *name, *value;
};

struct container {
    const char **command, **args;
    size_t n_command, n_args;
    // Only the variables with a value in the template. Variables with other sources come from the caller's environment.
    struct container_variable *env;
    size_t n_env;
    // The sum over all containers of the template: their requests, or else their limits, as the API server computes
    // them.
    int64_t cpu_milli;
};

// `template` is the JSON of a PodTemplateSpec, or NULL. The arena contains the whole result. ERR_INVALID names the
// field.
int container_read(const char *template, struct arena *a, struct container *ret, struct err *err);
