// SPDX-License-Identifier: Apache-2.0
// Gives objects of this process to other worker processes that show their key. One listening socket on the loop,
// whatever the methods do meanwhile. The number of connections and their silence are bounded.
//
// Values on the device go to processes of the same place by a handle, and the object stays until they hang up. To
// others they go over the connection, copied to the host piece by piece beside the loop.
#pragma once

#include "common/base/loop.h"
#include "worker/host/object_store.h"

enum { LENDER_CONNECTIONS_MAX = 256, LENDER_SILENT_MS = 30 * 1000 };

struct lender;
struct rendezvous;

struct lender_config {
    struct loop *loop;
    struct store *store;
    struct rendezvous *rendezvous; // gets the connections of those who come to it; NULL = nobody may
    struct rank_device *device;    // NULL = no object has values there
    bool local;                    // only processes of this machine reach it, else all
    int port;                      // 0 = one that is free
};

// What the configuration names outlives it. ERR_UNAVAILABLE: it cannot listen.
struct lender *lender_new(const struct lender_config *config, struct err *err);
void lender_free(struct lender *l); // accepts NULL
int lender_port(const struct lender *l);
// What keys are made with; until it is known nobody gets anything. Copied.
void lender_secret(struct lender *l, const char *secret);
uint64_t lender_bytes(const struct lender *l); // that were given, ever
