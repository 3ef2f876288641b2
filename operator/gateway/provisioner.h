// SPDX-License-Identifier: Apache-2.0
// Creates and deletes WorkerGroups and PlacementGroups for clients: the interface that the gateway needs. In a cluster,
// operator/wiring/provision.c implements it, in a local run operator/local/local_provision.c.
#pragma once

#include "operator/gateway/authority.h"

#include <stdbool.h>
#include <stddef.h>

struct provision {
    const char *ns; // that the client was admitted to
    struct client_user who;
    const void *lifetime; // names the session; NULL = there is none, what is created has to be detached
    const char *args;     // JSON, not checked
};

// Once, later or at once. json: the result, where err->code is 0.
typedef void (*provisioner_done_fn)(void *done_ctx, const char *json, size_t len, const struct err *err);

typedef void (*provisioner_fn)(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx);

struct provisioner { // what they are given is theirs until they return
    void *ctx;
    provisioner_fn create;
    provisioner_fn remove;
    // Starts the processes of a group again, also of one that has failed.
    provisioner_fn restart;
    // Where the bundles of a PlacementGroup are.
    provisioner_fn bundles;
    // How many nodes there are, and what they have together.
    provisioner_fn capacity;
    // The session has ended. wanted: it may come again; else what was created for it can go at once.
    void (*ended)(void *ctx, const void *lifetime, bool wanted);
};
