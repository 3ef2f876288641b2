// SPDX-License-Identifier: Apache-2.0
// The addresses of a host, for one connection after the other. They are looked up each time, and remembered in case the
// name server is slow or away. Those that failed recently come last.
#pragma once

#include "common/base/loop.h"

#include <sys/socket.h>

enum {
    WS_ADDRESSES_MAX = 16,
    WS_ADDRESSES_PATIENCE_MS = 100, // how long to wait for a name server if addresses are known
};

struct ws_address {
    struct sockaddr_storage sa;
    socklen_t len;
    uint64_t failed; // private: the higher, the later; 0 = not since the address is known
};

struct ws_addresses;

// For "host:port" or "[v6]:port". NULL and ERR_INVALID for an address that is not valid.
struct ws_addresses *ws_addresses_new(struct loop *loop, const char *address, struct err *err);
void ws_addresses_free(struct ws_addresses *a); // accepts NULL

// Calls fn once, from the loop: with an error, or without one when there are addresses. One at a time.
typedef void (*ws_addresses_fn)(void *ctx, const struct err *err);
void ws_addresses_find(struct ws_addresses *a, ws_addresses_fn fn, void *ctx);
void ws_addresses_cancel(struct ws_addresses *a); // fn is not called any more; the lookup continues

const char *ws_addresses_host(const struct ws_addresses *a);
size_t ws_addresses_count(const struct ws_addresses *a);
const struct ws_address *ws_addresses_at(const struct ws_addresses *a, size_t i); // best first
// A connection to this address failed, or was lost. An unknown address is ignored.
void ws_addresses_failed(struct ws_addresses *a, const struct ws_address *address);
