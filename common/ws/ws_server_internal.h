// SPDX-License-Identifier: Apache-2.0
// What the files of ws_server share.
#ifndef CADRE_WS_WS_SERVER_INTERNAL_H
#define CADRE_WS_WS_SERVER_INTERNAL_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/list.h"
#include "common/wire/blob.h"
#include "common/ws/ws_server.h"

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

struct ws_porch; // ws_server_porch.c

struct ws_server {
    struct loop *loop;
    struct ws_server_config config;
    struct lws_context *context; // NULL once libwebsockets has let go of it
    struct lws_protocols *protocols;
    struct list listeners, connections;
    struct list paused;    // sessions
    struct list strangers; // connections that libwebsockets has, and that have no request yet; oldest first
    unsigned n_strangers;
    struct ws_porch *porch; // connections before that
    struct loop_hook *hook;
    struct loop_timer *sweep;
    uint64_t sweep_due;
    struct quota *quota, *bodies;
    struct ws_server_counters counters;
    uint64_t adopted;  // connections that libwebsockets took over
    SSL_CTX *creating; // where the certificate of the listener that is being made goes
    char *cert_pem, *key_pem;
    bool freeing;
    unsigned char *scratch; // a message, with LWS_PRE bytes in front
    char *read_buf;         // read_size bytes, for all sessions
    struct ws_receivers *receivers;
};

// What a connection is to us; hangs on libwebsockets' struct from accept to its end.
struct ws_connection {
    struct list link;
    struct ws_server *server;
    struct lws *wsi; // NULL until something was heard of it
    int fd;          // libwebsockets' to close
    bool is_unix;
    struct list stranger; // in the server's list until there is a request
    bool known;           // it is not in it
    struct ws_session *session;
    struct ws_request *request;
};

struct ws_receiver; // ws_server_receive.c

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
    bool asked;                  // libwebsockets is going to say that the socket is writable
    bool paused, heard, ping_due;
    struct list pause; // in the server's list while it is paused
    bool pinged;       // and not heard since
    bool moved;        // something was sent since the last sweep
    bool stuck;        // at the last sweep something was waiting, and nothing had been sent
    struct ws_queue queue;
    bool in_message, text;
    size_t message_len;
    struct blob *message; // what on_message will get
    struct quota *quota;
    unsigned close_code;
    char close_reason[FRAME_REASON_MAX + 1];
};

struct ws_request {
    struct ws_connection *connection;
    struct arena arena;
    const char *method, *path, *query;
    struct buf body;
    size_t want; // bytes of body
    bool handed_over, answered;
    bool held_up; // its body waits for ws_request_read()
    struct buf answer;
    size_t body_charged, answer_charged; // to the server's quotas
    size_t sent, swept;                  // swept: what was sent at the last sweep
    unsigned sweeps;                     // while nothing came of it
    void (*gone)(void *ctx, struct ws_request *r);
    void *gone_ctx;
};

static inline struct ws_connection *connection_of(struct lws *wsi)
{
    return lws_get_opaque_user_data(wsi);
}

void ws_server_sweep_next(struct ws_server *server); // ws_server.c: arms the timer of the next part of a round
// ws_server_listen.c
void ws_listener_free(struct ws_listener *l);
void ws_connection_adopt(struct ws_listener *l, int fd);
void ws_connection_known(struct ws_connection *c); // it has a request, or is no more
// ws_server_porch.c
int ws_porch_new(struct ws_server *server, struct err *err);
void ws_porch_free(struct ws_server *server);
void ws_porch_clear(struct ws_porch *p);
unsigned ws_porch_count(const struct ws_porch *p);
bool ws_porch_take(struct ws_listener *l, int fd); // adopts it once it says something; false: it cannot
bool ws_porch_drop_oldest(struct ws_porch *p);     // false: there is none
// ws_server_tls.c
int ws_server_tls_check(const char *cert_pem, const char *key_pem, struct err *err);
int ws_server_tls_set(SSL_CTX *ctx, const char *cert_pem, const char *key_pem, struct err *err);
void ws_server_tls_prepare(SSL_CTX *ctx);
// ws_server_session.c: what libwebsockets calls; non-zero closes the connection
struct ws_session *ws_session_new(struct ws_connection *c);
int ws_session_established(struct ws_session *s);
void ws_session_glued(struct ws_session *s);
int ws_session_writable(struct ws_session *s);
int ws_session_peer_closes(struct ws_session *s, const unsigned char *payload, size_t len);
// ... and what the receiver calls
void ws_session_take(struct ws_session *s, bool text, const char *data, size_t len, bool end);
void ws_session_pong(struct ws_session *s, const char *data, size_t len);
void ws_sessions_show_life(struct ws_server *server);
void ws_session_peer_closed(struct ws_session *s, unsigned code, const char *reason, size_t len);
void ws_session_refuse(struct ws_session *s, unsigned code, const char *reason);
void ws_session_cut(struct ws_session *s);
void ws_session_end(struct ws_session *s); // tells the owner, frees
void ws_session_sweep(struct ws_session *s);
// ws_server_receive.c
int ws_receivers_new(struct ws_server *server, struct err *err);
void ws_receivers_free(struct ws_server *server);
void ws_receivers_begin(struct ws_server *server);   // before each turn
void ws_receiver_new(struct ws_session *s);          // of an open one; nothing is read before the next turn
bool ws_receiver_failed(const struct ws_session *s); // what came was not a frame: nothing more is understood
void ws_receiver_free(struct ws_session *s);
void ws_receiver_watch(struct ws_session *s); // after a change of `paused`
// ws_server_http.c: likewise
int ws_request_upgrade(struct ws_connection *c, const char *protocol);
int ws_request_begin(struct ws_connection *c);
int ws_request_piece(struct ws_connection *c, const void *data, size_t len);
int ws_request_complete(struct ws_connection *c);
int ws_request_writable(struct ws_connection *c);
void ws_request_end(struct ws_request *r);
void ws_request_sweep(struct ws_request *r);

#endif
