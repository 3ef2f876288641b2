// SPDX-License-Identifier: Apache-2.0
// The object that this process serves: one object of the module's class. It lives on the executor's thread from its
// constructor to its destructor. Used from the loop's thread.
#pragma once

#include "worker/host/host_process.h"
#include "worker/host/method_executor.h"

struct instance_config {
    struct method_executor *executor;
    struct cadre_worker *worker; // outlives the instance
    const cadre_class *class;
    const char *init; // JSON; NULL = {}
    // Called once, from the loop. Code 0: calls may come. Another code: the message is from the constructor.
    void (*on_created)(void *ctx, const struct err *err);
    // Called after instance_destroy(), from the loop. The instance is freed already.
    void (*on_destroyed)(void *ctx);
    void *ctx;
};

struct instance;

// Submits the constructor. ERR_INVALID: `init` is not JSON, and there is no instance.
struct instance *instance_new(const struct instance_config *config, struct err *err);
void *instance_self(const struct instance *i);                        // for the executor's threads
unsigned instance_lane(const struct instance *i, const char *method); // of the executor
// Submits the destructor. Do not call this while the constructor runs. Submit no call afterwards.
void instance_destroy(struct instance *i);
