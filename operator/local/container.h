// SPDX-License-Identifier: Apache-2.0
// The container of a pod template, as far as a local run uses it. Read with cJSON (docs/adr/0005), because it is read
// once, at the start.
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
    // Those with a value of their own; what comes from elsewhere in the cluster is left to the caller's environment.
    struct container_variable *env;
    size_t n_env;
    int64_t cpu_milli; // of all containers of the template: requests, or else limits, as the API server takes them
};

// `template`: JSON of a PodTemplateSpec, or NULL. Everything is in the arena. ERR_INVALID names the field.
int container_read(const char *template, struct arena *a, struct container *ret, struct err *err);
