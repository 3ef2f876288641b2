// SPDX-License-Identifier: Apache-2.0
// Connects to the first of several addresses that answers (RFC 8305). It tries the next one when one fails, or in
// parallel when one has not answered for a moment. The address of a dead node therefore costs little time.
#pragma once

#include "common/ws/ws_addresses.h"

enum {
    WS_DIAL_NEXT_MS = 250,     // then the next address is tried in parallel
    WS_DIAL_CONNECT_MS = 3000, // for each attempt: the kernel's own pauses grow, a new attempt begins with short ones
    // On a quiet TCP connection, the kernel finds within 20 s that the peer's host is gone, without waking this
    // process.
    WS_DIAL_KEEPALIVE_IDLE_S = 10,
    WS_DIAL_KEEPALIVE_EVERY_S = 5,
    WS_DIAL_KEEPALIVE_PROBES = 2,
};

struct ws_dial;

struct ws_dial_config {
    const struct ws_address *list; // borrowed
    size_t n;                      // 1 to WS_ADDRESSES_MAX
    // One of the two is called once, from the loop. The callee owns the descriptor.
    void (*connected)(void *ctx, int fd, size_t which);
    void (*failed)(void *ctx, int error); // the errno of the last one
    void *ctx;
};

struct ws_dial *ws_dial_new(struct loop *loop, const struct ws_dial_config *config);
void ws_dial_free(struct ws_dial *d);                  // accepts NULL; may be called in a callback
bool ws_dial_tried(const struct ws_dial *d, size_t i); // the attempt was begun
