// SPDX-License-Identifier: Apache-2.0
// Tells every other replica of this operator whom this one sees. It connects to each address of the operator's name,
// and reports which agents and processes are connected here: first all of them, then the changes. One thread, the
// loop's.
#pragma once

#include "common/base/loop.h"
#include "operator/agents/agents.h"
#include "operator/proxy/router.h"

struct replica_reporter;

struct replica_reporter_config {
    struct loop *loop;
    const char *url, *ca_pem;    // where the replicas are, and whom to trust
    const char *name, *instance; // what this one is called, and what tells this process from others of that name
    const char *proof;           // that it has the key of the install
    const struct agents *agents; // borrowed
    const struct router *router; // borrowed
    uint64_t seed;
    // The name leads nowhere; once, until it does. For the log.
    void (*alone)(void *ctx, const struct err *err);
    void *ctx;
};

struct replica_reporter *replica_reporter_new(const struct replica_reporter_config *config,
                                              struct err *err); // strings are copied; ERR_INVALID
void replica_reporter_free(struct replica_reporter *l);         // accepts NULL
void replica_reporter_look(struct replica_reporter *l);         // a replica has connected, and may be new; accepts NULL
// Something may have changed; it is looked at, and told, a moment later. May be called from inside of callbacks.
void replica_reporter_agent(struct replica_reporter *l, const char *pod_uid);
void replica_reporter_group(struct replica_reporter *l, const char *group_uid);
