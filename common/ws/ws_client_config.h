// SPDX-License-Identifier: Apache-2.0
// The configuration of a websocket client, and the client's own copy of it.
#pragma once

#include "common/wire/handshake.h"
#include "common/ws/ws_tls.h"

struct ws_addresses;

struct ws_client_config {
    const char *address;      // "host:port", "[v6]:port" or "unix:/path"
    const char *path;         // NULL = "/"
    const char *subprotocols; // offered, comma separated, in order of preference; NULL = none
    const struct handshake_header *headers;
    size_t n_headers;
    struct ws_tls *tls;             // NULL = none
    const char *server_name;        // for TLS; NULL = the host of the address
    struct ws_addresses *addresses; // of the host, kept and borrowed; NULL = its own
    bool mask_always;               // false: a zero key if the traffic is encrypted or stays on the host
    int64_t open_ms;                // until on_open; 0 = 10 s
    // Silence before a ping. 0 = 60 s, or never on a Unix socket. The server's own pings come sooner than after 60 s.
    // The kernel reports the end of the server's process and of its host (ws_dial.h).
    int64_t ping_ms;
    int64_t pong_ms; // silence after it before the connection counts as dead; 0 = 10 s
    // Whether somebody waits for the peer. If so, the peer is pinged sooner (ws_silence.h). Called inside of other
    // calls. NULL = never.
    bool (*waits)(void *ctx);
    size_t max_message; // a longer one is refused with 1009; 0 = 64 MiB
    size_t max_queue;   // bytes that may wait to be sent; 0 = 256 MiB

    // Data points into memory that is valid during the call. on_data, if set, gets binary messages as they arrive, in
    // pieces, `end` with the last one (which may be empty); on_message gets the others whole, and may be NULL: such
    // messages are refused with 1003.
    void (*on_open)(void *ctx, const char *subprotocol); // "" = none
    void (*on_data)(void *ctx, const char *data, size_t len, bool end);
    // Returns a buffer for the next bytes of a binary message; on_data then gets them there. NULL = it has none.
    // The function may be NULL.
    char *(*on_buffer)(void *ctx, size_t *ret_room);
    void (*on_message)(void *ctx, bool text, const char *data, size_t len);
    void (*on_drained)(void *ctx); // below WS_LOW_MARK again after WS_HIGH_MARK; may be NULL
    // The last callback, exactly once, also if the connection never opened. code: from the peer's close frame or ours;
    // 1006 if the connection just ended. err: the error; its code is 0 after an orderly end.
    void (*on_close)(void *ctx, unsigned code, const char *reason, const struct err *err);
    void *ctx;
};

// A copy with its own strings, and with defaults for the fields that are not set.
struct ws_client_config ws_client_config_copy(const struct ws_client_config *config);
// Writes the request that opens the connection, with a new key.
int ws_client_config_request(const struct ws_client_config *config, const char *host, char key[HANDSHAKE_KEY_SIZE],
                             struct buf *out, struct err *err);
void ws_client_config_done(struct ws_client_config *config);
