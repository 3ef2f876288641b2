// SPDX-License-Identifier: Apache-2.0
// A link to every replica of a server: one for each address of its name, which is looked up regularly. The owner
// defines what a link is and how it connects. This module creates a link when an address appears, and ends it when the
// address has gone and the link is down. One thread.
#pragma once

#include "common/base/loop.h"
#include "common/ws/ws_tls.h"

#define WS_REPLICAS_PATH "/v1/connect" // where agents and workers dial

enum {
    WS_REPLICAS_MAX = 16,
    // The longest pause between two lookups, minus a random part of up to half.
    WS_REPLICAS_LOOK_MS = 30 * 1000,
    WS_REPLICAS_SOON_MS = 1000, // at first, and after a change; doubles
    // For this long after a loss, the pause does not double: the next replica is found within a second.
    WS_REPLICAS_BRISK_MS = 30 * 1000,
    WS_REPLICAS_FEW_MS = 3000, // while fewer links are up than the name has, or lately had, addresses
    WS_REPLICAS_LATELY_MS = 10 * 60 * 1000,
};

struct ws_replicas;

struct ws_replicas_config {
    const char *url;    // "wss://host:port", or "ws://host:port" without TLS
    const char *ca_pem; // for wss: the certificates to trust; NULL = the system's
    int64_t look_ms;    // 0 = WS_REPLICAS_LOOK_MS
    bool patient;       // nobody waits for a link: lookups become rarer even if links are missing
    // A new address ("1.2.3.4:9443", "[::1]:9443"). Returns its link. NULL = none, ask again later.
    void *(*add)(void *ctx, const char *address); // `address` is valid during the call
    bool (*up)(void *ctx, void *link);            // a link that is up stays, even if its address has gone from the name
    void (*remove)(void *ctx, void *link);        // ends it at once
    // The name has no address. Called once, until there is one again.
    void (*unresolved)(void *ctx, const struct err *err);
    void *ctx;
};

// Begins to look. The strings are copied. ERR_INVALID for a URL or certificates that are not valid.
struct ws_replicas *ws_replicas_new(struct loop *loop, const struct ws_replicas_config *config, struct err *err);
void ws_replicas_free(struct ws_replicas *r); // removes every link; accepts NULL
// A link that was up is lost, and its replica may have gone elsewhere; or something else says that there are new
// replicas.
void ws_replicas_look_soon(struct ws_replicas *r);
void ws_replicas_stop(struct ws_replicas *r); // looks no more, and neither adds nor removes links

// The longest time until the next lookup. last_ms: the time before the last lookup. few: links are missing.
int64_t ws_replicas_wait(int64_t last_ms, int64_t since_loss_ms, bool few, int64_t look_ms);

const char *ws_replicas_host(const struct ws_replicas *r);   // for the certificate; lives as long as this
struct ws_tls *ws_replicas_tls(const struct ws_replicas *r); // NULL = none; borrowed
size_t ws_replicas_count(const struct ws_replicas *r);
void *ws_replicas_at(const struct ws_replicas *r, size_t i);
