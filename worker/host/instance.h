// SPDX-License-Identifier: Apache-2.0
// The object that this process serves: one of the module's class, which lives on the executor's thread from its
// constructor to its destructor. Used from the loop's thread.
#pragma once

#include "worker/host/host_process.h"
#include "worker/host/method_executor.h"

struct instance_config {
    struct executor *executor;
    struct cadre_worker *worker; // outlives the instance
    const cadre_class *class;
    const char *init; // JSON; NULL = {}
    // Once, from the loop, with code 0 when calls may come; else with what the constructor said.
    void (*on_created)(void *ctx, const struct err *err);
    // After instance_destroy(), from the loop; the instance is gone.
    void (*on_destroyed)(void *ctx);
    void *ctx;
};

struct instance;

// Submits the constructor. ERR_INVALID, and no instance, where `init` is not JSON.
struct instance *instance_new(const struct instance_config *config, struct err *err);
void *instance_self(const struct instance *i);                        // for the executor's threads
unsigned instance_lane(const struct instance *i, const char *method); // of the executor
// Submits the destructor; not while the constructor runs. No call may be submitted after.
void instance_destroy(struct instance *i);
