// SPDX-License-Identifier: Apache-2.0
// The configuration of a server: its limits and its callbacks (ws_server.h). Its counters.
#pragma once

#include "common/wire/quota.h"

struct err;
struct ws_request;
struct ws_session;

struct ws_message { // a whole one
    bool text;
    const char *data;
    size_t len;
    // Contains the message, after message_room bytes that the callee may write to. Take a reference to keep it. NULL:
    // the message lies in the server's input.
    struct blob *blob;
};

struct ws_server_config {
    const char *const *subprotocols; // supported ones, NULL-terminated; must outlive the server
    const char *cert_pem, *key_pem;  // for listeners with TLS; may come later by ws_server_certificate()
    // 0 = 16384. The process's soft limit of open files becomes this plus 1024. If it cannot, this value is lowered. A
    // quarter of the connections, at most 4096, may have sent nothing, and 1024 may have no whole request. Above that,
    // the oldest are dropped.
    unsigned max_connections;
    int64_t first_line_ms; // for the first line of a request, with TLS the ClientHello; not on Unix sockets; 0 = 5 s
    size_t max_message;    // a longer one is refused with 1009; 0 = 64 MiB
    size_t message_room;   // free bytes before a message that came in several reads; 0 = none
    size_t max_queue;      // bytes that may wait to be sent in a session; 0 = 256 MiB
    size_t max_session;    // bytes that a session's quota allows; 0 = 512 MiB
    size_t max_total;      // bytes of all sessions' quotas together; 0 = 2 GiB
    struct quota *quota;   // charged with all of them, too; a reference is taken. NULL = not counted elsewhere
    size_t max_body;       // of an HTTP request; 0 = 1 MiB
    size_t max_bodies;     // of all bodies together that are kept; 0 = 64 MiB
    size_t read_size;      // most bytes a read; at least 16 KiB; 0 = WS_WAVE
    // A session that is silent for this long is pinged, and closed after the same time again. Twice this time is also
    // the limit for a request to come in, and for an answer or waiting data while the peer takes no byte of it. All of
    // an answer may take 180 times as long. 0 = 20 s
    int64_t ping_ms;
    // Whether somebody waits for the peer. On a Unix socket, a session is only pinged then, or while data waits to be
    // sent: the kernel reports the end of the peer's process. NULL = never
    bool (*waits)(void *ctx, const struct ws_session *s);

    // Decides about an upgrade. 0: accepted, on_close follows in any case. Negative: refused; the client gets
    // err->http_status (403 if 0) and err->msg. If the decision takes longer: accept, pause, and later close with 1008.
    int (*on_upgrade)(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err);
    void (*on_open)(void *ctx, struct ws_session *s);
    // on_data, if set, gets binary messages as they arrive, in pieces; on_message gets the others whole, and may be
    // NULL: such messages are refused with 1003. Data is valid during the call.
    void (*on_data)(void *ctx, struct ws_session *s, const char *data, size_t len, bool end);
    void (*on_message)(void *ctx, struct ws_session *s, const struct ws_message *m);
    // Returns a buffer for the next bytes of a binary message; on_data then gets them there. It returns NULL if it has
    // none. May be NULL.
    char *(*on_buffer)(void *ctx, struct ws_session *s, size_t *ret_room);
    void (*on_drained)(void *ctx, struct ws_session *s); // below WS_LOW_MARK again after WS_HIGH_MARK; may be NULL
    // The session is gone after this call. code 1006: the connection just ended.
    void (*on_close)(void *ctx, struct ws_session *s, unsigned code, const char *reason);
    // The head of a POST, before more of its body is read than came with it. 0: read the body. 1: wait until
    // ws_request_read(). The request may also be answered now or later; then on_http does not follow. NULL: all bodies
    // are read.
    int (*on_head)(void *ctx, struct ws_request *r);
    // A whole HTTP request; ws_request_respond() answers it, now or later. NULL: every request gets 404.
    void (*on_http)(void *ctx, struct ws_request *r);
    void *ctx;
};

struct ws_server_counters {
    uint64_t connections, sessions; // now
    uint64_t opened, refused,
        turned_away;   // in total: sessions; upgrades; connections over max_connections, or without a request
    uint64_t requests; // in total: HTTP, without upgrades
    uint64_t messages_in, bytes_in, messages_out, bytes_out;
    uint64_t silent, over_limit; // in total: sessions that answer no ping; connections with too much of something
};
