// SPDX-License-Identifier: Apache-2.0
// The GPUs of the pod, as far as they are known, and the ranks that use them. A separate program, cadre-gpus, asks the
// driver: the agent links no library, and must not hang with the driver.
#pragma once

#include "common/wire/gpu.h"
#include "worker/agent/agent.h"

enum { PROBE_SILENT_MS = 60 * 1000, PROBE_AGAIN_MS = 60 * 1000 };

struct probe;

struct probe_config {
    struct loop *loop;
    struct agent *agent;
    const char *const *argv; // of the program; copied
    const char *const *env;  // of the pod; borrowed
    int pod_gpus;            // as in struct agent_config
    int err;                 // where the program's standard error goes
    // Something is new. `urgent`: a GPU was lost, or has a new error.
    void (*changed)(void *ctx, bool urgent);
    void *ctx;
};

// Returns true if a pod with this environment and this number of GPUs may have NVIDIA GPUs to watch.
bool probe_wanted(const char *const *env, int pod_gpus);
struct probe *probe_new(const struct probe_config *c);
void probe_free(struct probe *p); // accepts NULL
// Grows with each change; 0 = nothing is known yet. p may be NULL: nothing will ever be known.
uint64_t probe_version(const struct probe *p);
// Writes all GPUs with the ranks that use them now, as member "gpus" of the open object.
void probe_write(const struct probe *p, struct json_writer *w);
