// SPDX-License-Identifier: Apache-2.0
// Gives objects of this process to other worker processes that show their key. It has one listening socket on the loop,
// so it works while methods run. The number of connections and their silence are bounded.
//
// A process of the same place gets values on the device as a handle, and the object stays until that process hangs up.
// Other processes get the values over the connection. They are copied to the host piece by piece beside the loop.
#pragma once

#include "common/base/loop.h"
#include "worker/host/object_store.h"

enum { OBJECT_SERVER_PEERS_MAX = 256, OBJECT_SERVER_SILENT_MS = 30 * 1000 };

struct object_server;
struct rendezvous;

struct object_server_config {
    struct loop *loop;
    struct object_store *store;
    struct rendezvous *rendezvous; // gets the connections that ask for it; NULL = none may
    struct rank_device *device;    // NULL = no object has values on a device
    bool local;                    // only processes of this machine can reach the server
    int port;                      // 0 = a free port
};

// Everything in the configuration must outlive the server. ERR_UNAVAILABLE: it cannot listen.
struct object_server *object_server_new(const struct object_server_config *config, struct err *err);
void object_server_free(struct object_server *s); // accepts NULL
int object_server_port(const struct object_server *s);
// The secret with which keys are made. Nobody gets anything until it is known. It is copied.
void object_server_secret(struct object_server *s, const char *secret);
