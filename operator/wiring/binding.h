// SPDX-License-Identifier: Apache-2.0
// Joins the proxy to the cluster. The stores tell the gateway which groups and pods exist. The identity module tells it
// who connects. A peer that connects wakes its group.
#pragma once

#include "operator/exec/group_controller.h"
#include "operator/runtime/store.h"
#include "operator/wiring/operator_options.h"

struct binding;

struct binding_options { // all borrowed
    struct loop *loop;
    struct kube_client *client;
    struct store *const *stores; // indexed by enum kind; it subscribes to the stores of pods and WorkerGroups
    struct metrics *metrics;
    const struct operator_options *options;
    const char *ns; // namespace of the operator, which contains the Secret with the keys
    uint64_t seed;
    void (*failed)(void *ctx, const struct err *err); // the operator cannot listen
    void (*seen)(void *ctx);                          // this replica, or another one, now sees other agents
    void *ctx;
};

struct binding *binding_new(const struct binding_options *o, struct err *err);
// Call this when the stores are complete. From now on it listens, as soon as the keys exist.
void binding_complete(struct binding *b);
struct agents *binding_agents(struct binding *b);
struct router *binding_router(struct binding *b);
const struct replica_reports *binding_reports(const struct binding *b); // the reports of other replicas
// Returns the name of a replica that sees all agents that this one sees, and more. NULL = none.
const char *binding_sees_more(const struct binding *b);
void binding_attach(struct binding *b, struct group_controller *groups); // the controller to wake
// Closes all connections with a goodbye, and restores missing keys in the Secret.
void binding_stop(struct binding *b);
bool binding_idle(const struct binding *b); // the connections are closed, and the keys are restored or cannot be
void binding_retry_now(struct binding *b);  // call it when the API server answers again: it repeats the failed reads
void binding_free(struct binding *b);       // call it before the client and the controller are freed; accepts NULL
