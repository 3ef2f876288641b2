// SPDX-License-Identifier: Apache-2.0
// Reports to every other replica of this operator which peers this one sees. It connects to each address of the
// operator's name, and reports which agents and processes are connected here: first all of them, then the changes. It
// runs on the loop's thread.
#pragma once

#include "common/base/loop.h"
#include "operator/agents/agents.h"
#include "operator/proxy/router.h"

struct replica_reporter;

struct replica_reporter_config {
    struct loop *loop;
    const char *url, *ca_pem; // where the replicas are; the CA that they must have
    // The name of this replica; `instance` distinguishes this process from others with that name.
    const char *name, *instance;
    const char *proof;           // proves that it has the install key
    const struct agents *agents; // borrowed
    const struct router *router; // borrowed
    uint64_t seed;
    // The name does not resolve. Called once until it resolves, for the log.
    void (*alone)(void *ctx, const struct err *err);
    void *ctx;
};

struct replica_reporter *replica_reporter_new(const struct replica_reporter_config *config,
                                              struct err *err); // strings are copied; ERR_INVALID
void replica_reporter_free(struct replica_reporter *l);         // accepts NULL
void replica_reporter_look(struct replica_reporter *l);         // a replica has connected, and may be new; accepts NULL
// Call these when something may have changed, also inside callbacks. The reporter looks a moment later, and reports the
// change.
void replica_reporter_agent(struct replica_reporter *l, const char *pod_uid);
void replica_reporter_group(struct replica_reporter *l, const char *group_uid);
