// SPDX-License-Identifier: Apache-2.0
// Creates and deletes WorkerGroups and PlacementGroups for clients. This is the interface that the gateway needs. In a
// cluster, operator/wiring/provision.c implements it; in a local run, operator/local/local_provision.c does.
#pragma once

#include "operator/gateway/authority.h"

#include <stdbool.h>
#include <stddef.h>

struct provision {
    const char *ns; // the namespace that the client was admitted to
    struct client_user who;
    const void *lifetime; // identifies the session; NULL = there is none, and created objects must be detached
    const char *args;     // JSON, not checked yet
};

// Called once, later or at once. `json` is the result if err->code is 0.
typedef void (*provisioner_done_fn)(void *done_ctx, const char *json, size_t len, const struct err *err);

typedef void (*provisioner_fn)(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx);

struct provisioner { // arguments are valid only during a call
    void *ctx;
    provisioner_fn create;
    // The client has come back with another session: an object of its earlier session ends with this one.
    provisioner_fn renew;
    provisioner_fn remove;
    // Starts the processes of a group again, also after the group has failed.
    provisioner_fn restart;
    // Answers where the bundles of a PlacementGroup are.
    provisioner_fn bundles;
    // Answers how many nodes there are, and their total resources.
    provisioner_fn capacity;
    // The session has ended. `wanted`: it may come again. Otherwise its objects can be deleted at once.
    void (*ended)(void *ctx, const void *lifetime, bool wanted);
};
