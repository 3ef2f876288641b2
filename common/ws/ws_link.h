// SPDX-License-Identifier: Apache-2.0
// A stream to an address: looks up the name, connects to the first of its addresses that answers, and uses TLS if
// configured. Nothing blocks. For ws_client.
#pragma once

#include "common/base/loop.h"
#include "common/ws/ws_addresses.h"
#include "common/ws/ws_tls.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { WS_LINK_AT_SIZE = 80 };

struct ws_link;

struct ws_link_config {
    const char *address;            // "host:port", "[v6]:port" or "unix:/path"
    struct ws_tls *tls;             // NULL = none
    const char *server_name;        // NULL = the host of the address
    struct ws_addresses *addresses; // of that host, kept and borrowed; NULL = its own
    // `up` comes once. `ready` comes whenever a wanted read or write can continue. `failed` comes at most once, before
    // `up`.
    void (*up)(void *ctx);
    void (*ready)(void *ctx, int events);
    void (*failed)(void *ctx, const struct err *err);
    void *ctx;
};

// NULL if the address is not valid. Calls back from the loop only. Strings are borrowed, for as long as the link lives.
struct ws_link *ws_link_new(struct loop *loop, const struct ws_link_config *config, struct err *err);
// Accepts NULL; may be called in a callback; no callback comes after it. The next link tries the other addresses first.
void ws_link_free(struct ws_link *l);
void ws_link_avoid(struct ws_link *l); // other links try the other addresses first, also while this one lives

const char *ws_link_host(const struct ws_link *l);  // for a Host header: "host:port", "localhost" for a Unix socket
const char *ws_link_phase(const struct ws_link *l); // what it does now, for people
const char *ws_link_at(const struct ws_link *l); // for messages, after the address: " (1.2.3.4:80)" for a name, or ""
bool ws_link_trusted(const struct ws_link *l);   // TLS, or the traffic does not leave the host
pid_t ws_link_peer(const struct ws_link *l);   // after `up`: the process at the other end of a Unix socket, otherwise 0
bool ws_link_plain(const struct ws_link *l);   // no TLS
bool ws_link_drained(const struct ws_link *l); // the last read was not filled: `ready` reports what comes next

bool ws_link_ended(const struct ws_link *l); // the peer has ended it, even if bytes are left to be read
// After `up`: bytes, 0 = nothing now, negative ERR_GONE (ended by the peer) or ERR_IO. n: at
// least 1; TLS uses only the first.
int64_t ws_link_read(struct ws_link *l, const struct iovec *into, unsigned n, struct err *err);
int64_t ws_link_write(struct ws_link *l, const struct iovec *pieces, unsigned n, struct err *err);
void ws_link_want(struct ws_link *l, int events); // LOOP_READ | LOOP_WRITE
