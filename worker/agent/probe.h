// SPDX-License-Identifier: Apache-2.0
// What is known about the GPUs of the pod, and which ranks use them. A separate program, cadre-gpus, asks the driver,
// because the agent links no library and must not hang with the driver.
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
    int err;                 // its standard error goes there
    // There is something new. `urgent`: a GPU was lost, or has trouble that it did not have before.
    void (*changed)(void *ctx, bool urgent);
    void *ctx;
};

// Whether a pod with this environment and so many GPUs may have any of NVIDIA's to watch.
bool probe_wanted(const char *const *env, int pod_gpus);
struct probe *probe_new(const struct probe_config *c);
void probe_free(struct probe *p); // accepts NULL
// Grows with each news; 0 = nothing is known yet. NULL: nothing ever will.
uint64_t probe_version(const struct probe *p);
// All GPUs with the ranks that have them now, as member "gpus" of an object that is open.
void probe_write(const struct probe *p, struct json_writer *w);
