// SPDX-License-Identifier: Apache-2.0
// A websocket client on the loop: name lookup, connection, TLS, handshake, keepalive, and queues with flow control in
// both directions. All callbacks come from the loop, never inside a call, and never after ws_client_free(). Every
// callback may call ws_client_free(). One thread.
#pragma once

#include "common/base/loop.h"
#include "common/wire/handshake.h"
#include "common/ws/ws_queue.h"
#include "common/ws/ws_tls.h"

struct ws_client;

struct ws_client_config {
    const char *address;      // "host:port", "[v6]:port" or "unix:/path"
    const char *path;         // NULL = "/"
    const char *subprotocols; // offered, comma separated, in order of preference; NULL = none
    const struct handshake_header *headers;
    size_t n_headers;
    struct ws_tls *tls;             // NULL = none
    const char *server_name;        // for TLS; NULL = the host of the address
    struct ws_addresses *addresses; // of the host, kept and borrowed; NULL = its own
    bool mask_always;               // false: a zero key where the traffic is encrypted or stays on the host
    int64_t open_ms;                // until on_open; 0 = 10 s
    int64_t ping_ms;                // silence before a ping; 0 = 10 s
    int64_t pong_ms;                // silence after it before the connection counts as dead; 0 = 10 s
    // Whether somebody waits for the peer, which is then asked sooner whether it is there (ws_silence.h). Asked
    // inside of calls. NULL = never.
    bool (*waits)(void *ctx);
    size_t max_message; // a longer one is refused with 1009; 0 = 64 MiB
    size_t max_queue;   // bytes that may wait to be sent; 0 = 256 MiB

    // Data points into memory that is valid during the call. on_data, if set, gets binary messages as they arrive, in
    // pieces, `end` with the last one (which may be empty); on_message gets the others whole, and may be NULL: such
    // messages are refused with 1003.
    void (*on_open)(void *ctx, const char *subprotocol); // "" = none
    void (*on_data)(void *ctx, const char *data, size_t len, bool end);
    // Where the next bytes of a binary message may be put: on_data gets them there. NULL: nowhere. May be NULL itself.
    char *(*on_place)(void *ctx, size_t *ret_room);
    void (*on_message)(void *ctx, bool text, const char *data, size_t len);
    void (*on_drained)(void *ctx); // below WS_LOW_MARK again after WS_HIGH_MARK; may be NULL
    // Once, the last of all; also if it never opened. code: of the peer's close frame or of ours, 1006 if the
    // connection just ended. err: what went wrong, code 0 after an orderly end.
    void (*on_close)(void *ctx, unsigned code, const char *reason, const struct err *err);
    void *ctx;
};

// ERR_INVALID and NULL for a configuration that cannot work; whatever goes wrong later comes by on_close.
struct ws_client *ws_client_new(struct loop *loop, const struct ws_client_config *config, struct err *err);
void ws_client_free(struct ws_client *c); // at once, without a word to the peer; accepts NULL

// May be called before on_open. ERR_LIMIT when max_queue would wait; ERR_GONE after a close. What is queued goes out in
// the next turn, but for short records: a WS_WAVE or so of them goes out at once. Nothing calls back before the turn.
int ws_client_record(struct ws_client *c, const struct record_header *h, const struct record_part *parts, size_t n,
                     struct err *err);
int ws_client_record_copy(struct ws_client *c, const struct record_header *h, const void *body, size_t len,
                          struct err *err);
int ws_client_message(struct ws_client *c, bool text, const void *data, size_t len, struct err *err);
// The queue of records itself, to hold or drop something there; what is in it goes out in the next turn.
struct record_writer *ws_client_records(struct ws_client *c);
// Sends now what the next turn would send first, which then can wait at once. Calls back as a turn does.
void ws_client_flush(struct ws_client *c);
// Of this blob nothing is in the queue any more: what is half out is copied, and nothing refers to it from now on.
void ws_client_own(struct ws_client *c, const struct blob *b);
bool ws_client_ended(const struct ws_client *c); // by the peer, as a turn would find out
// For messages, behind the address: " (1.2.3.4:80)", where it is a name and there is, or was, a connection; else "".
const char *ws_client_at(const struct ws_client *c);
// After on_open: other connections try the other addresses of the host first, as they do after one was lost.
void ws_client_avoid(struct ws_client *c);
pid_t ws_client_peer(const struct ws_client *c); // the process at the other end of a Unix socket, else 0
size_t ws_client_queued(const struct ws_client *c);

// Sends what is queued, then a close frame; no more on_data or on_message. on_close follows in any case, after at most
// 5 s.
void ws_client_close(struct ws_client *c, unsigned code, const char *reason);
void ws_client_pause(struct ws_client *c); // no on_data, on_message until resumed; stops reading
void ws_client_resume(struct ws_client *c);
