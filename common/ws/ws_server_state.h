// SPDX-License-Identifier: Apache-2.0
// The state of the server: its listeners, connections, sessions and requests.
#pragma once

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/base/loop.h"
#include "common/wire/blob.h"
#include "common/ws/ws_queue.h"
#include "common/ws/ws_server_config.h"

#include <libwebsockets.h>

enum { WS_HEADER_MAX = 17 << 10 }; // bytes of one header: tokens may have 16 KiB

struct ws_listener {
    struct list link;
    struct ws_server *server;
    struct lws_vhost *vhost;
    SSL_CTX *tls; // of the vhost; NULL = none
    int fd;       // -1 = stopped
    struct loop_poll *poll;
    struct loop_timer *retry; // after running out of descriptors
    char *unix_path;
};

struct ws_preread; // ws_preread.h

struct ws_server {
    struct loop *loop;
    struct ws_server_config config;
    struct lws_context *context; // NULL once libwebsockets has let go of it
    struct lws_protocols *protocols;
    struct list listeners, connections;
    struct list paused;          // sessions
    struct list without_request; // connections that libwebsockets has, and that have no request yet; oldest first
    unsigned n_without_request;
    struct ws_preread *preread; // connections that libwebsockets does not have yet
    struct list ending;         // connections that are to be hung up, first come, first served
    struct loop_hook *hook;
    struct loop_timer *sweep;
    uint64_t calm;            // connections in a row that were swept and need no sweep
    unsigned woken;           // how often libwebsockets was woken for data that it holds, and reported nothing since
    struct loop_timer *again; // it is woken once more
    struct quota *quota, *bodies;
    struct ws_server_counters counters;
    uint64_t adopted;  // connections that libwebsockets took over
    SSL_CTX *creating; // place for the certificate of the listener that is being made
    char *cert_pem, *key_pem;
    bool freeing;
    unsigned char *scratch; // a message, with LWS_PRE bytes before it
    char *read_buf;         // read_size bytes, for all connections
    struct ws_readers *readers;
};

// How far a connection is. Until WS_REQUEST, ws_preread.h decides when libwebsockets reads it.
enum ws_stage {
    WS_HANDSHAKE,  // of TLS
    WS_FIRST_LINE, // of its request: must be read first
    WS_HEAD,       // the rest of the request has not come yet
    WS_REQUEST,    // the request is complete, or the connection has ended
};

// The server's state of a connection. libwebsockets' struct points to it from accept to the end.
struct ws_connection {
    struct list link;
    struct ws_server *server;
    struct lws *wsi; // NULL until the connection sends something
    int fd;          // libwebsockets closes it
    bool is_unix;
    enum ws_stage stage;
    struct list without_request; // in the server's list until there is a request, or the connection is ended
    int64_t until_ms;            // its time limit
    uint8_t line_ends;           // how much of the "\r\n\r\n" at the end of a head was seen
    bool refused;                // its path is not accepted
    struct list ending;          // in the server's list until it is hung up ...
    bool hung_up;                // ... and then was
    int64_t swept_ms;            // when it was swept, or adopted
    struct ws_session *session;
    struct ws_request *request;
};

struct ws_receiver; // ws_receiver.h
struct ws_reader;   // ws_reader.h

struct ws_session {
    struct ws_connection *connection;
    struct ws_receiver *receiver; // NULL before it is open
    void *user;
    bool open, closing;
    bool told;                 // our close frame is out, or the peer's came
    bool cut;                  // to be hung up
    bool answer_due, answered; // of the peer's close frame
    uint8_t pong_len;
    bool pong_due;
    char *pong;                  // NULL before the first ping of the peer
    struct loop_timer *deadline; // of closing
    bool asked;                  // libwebsockets will report when the socket is writable
    bool paused, heard, ping_due;
    struct list pause; // in the server's list while it is paused
    bool pinged;       // and nothing was heard since
    bool moved;        // something was sent since the last sweep
    bool stuck;        // at the last sweep something was waiting, and nothing had been sent
    struct ws_queue queue;
    size_t work; // bytes that count for this turn, in addition to those that were read
    bool in_message, text;
    size_t message_len;
    struct blob *message; // the message for on_message
    struct quota *quota;
    unsigned close_code;
    char close_reason[FRAME_REASON_MAX + 1];
};

struct ws_request {
    struct ws_connection *connection;
    struct ws_reader *reader; // of its body; NULL = none
    struct arena arena;
    const char *method, *path;
    struct buf body;
    size_t want; // bytes of body
    bool handed_over, answered;
    bool held_up;                        // its body waits for ws_request_read()
    struct buf answer;                   // its head, and copied bytes
    struct parts rest;                   // of it
    struct quota *payer;                 // NULL = the server's quotas
    size_t body_charged, answer_charged; // to it
    size_t sent, swept;                  // swept: bytes sent at the last sweep
    unsigned sweeps;                     // sweeps without progress
    unsigned rounds;                     // sweeps since it was answered
    void (*gone)(void *ctx, struct ws_request *r);
    void *gone_ctx;
    void (*ended)(void *ctx);
    void *ended_ctx;
};

static inline struct ws_connection *connection_of(struct lws *wsi)
{
    return lws_get_opaque_user_data(wsi);
}
