// SPDX-License-Identifier: Apache-2.0
// Gives objects of this process to other worker processes that show their key. One listening socket on the loop,
// whatever the methods do meanwhile. The number of connections and their silence are bounded.
//
// Values on the device go to processes of the same place by a handle, and the object stays until they hang up. To
// others they go over the connection, copied to the host piece by piece beside the loop.
#pragma once

#include "common/base/loop.h"
#include "worker/host/object_store.h"

enum { OBJECT_SERVER_PEERS_MAX = 256, OBJECT_SERVER_SILENT_MS = 30 * 1000 };

struct object_server;
struct rendezvous;

struct object_server_config {
    struct loop *loop;
    struct store *store;
    struct rendezvous *rendezvous; // gets the connections of those who come to it; NULL = nobody may
    struct rank_device *device;    // NULL = no object has values there
    bool local;                    // only processes of this machine reach it, else all
    int port;                      // 0 = one that is free
};

// What the configuration names outlives it. ERR_UNAVAILABLE: it cannot listen.
struct object_server *object_server_new(const struct object_server_config *config, struct err *err);
void object_server_free(struct object_server *s); // accepts NULL
int object_server_port(const struct object_server *s);
// What keys are made with; until it is known nobody gets anything. Copied.
void object_server_secret(struct object_server *s, const char *secret);
uint64_t object_server_bytes(const struct object_server *s); // that were given, ever
