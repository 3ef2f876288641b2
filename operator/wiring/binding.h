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
    struct store *const *stores; // by enum kind; it subscribes to those of pods and WorkerGroups
    struct metrics *metrics;
    const struct options *options;
    const char *ns; // the operator's, where the Secret with the keys is
    uint64_t seed;
    void (*failed)(void *ctx, const struct err *err); // it cannot listen
    void (*seen)(void *ctx); // which agents this replica sees has changed, or which ones another replica sees
    void *ctx;
};

struct binding *binding_new(const struct binding_options *o, struct err *err);
// The stores have all that there is. From now on it listens, once the keys are there.
void binding_complete(struct binding *b);
struct agents *binding_agents(struct binding *b);
struct router *binding_router(struct binding *b);
const struct replica_reports *binding_reports(const struct binding *b); // what other replicas say
// The name of a replica that sees all agents that this one sees, and more; NULL = none.
const char *binding_sees_more(const struct binding *b);
void binding_attach(struct binding *b, struct group_controller *groups); // whom to wake
// Says goodbye to all that are connected, and puts keys back that are gone from the Secret.
void binding_stop(struct binding *b);
bool binding_idle(const struct binding *b); // and they are gone, and the keys are there or not to be had
void binding_hurry(struct binding *b);      // the API server answers again: what could not be read is read now
void binding_free(struct binding *b);       // before the client and the controller; accepts NULL
