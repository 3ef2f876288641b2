// SPDX-License-Identifier: Apache-2.0
// The server side: websocket sessions (ws_session.h) and HTTP requests (ws_request.h) on the loop, over TCP (with or
// without TLS) and Unix sockets. It uses libwebsockets 4.1.6 or newer. With TLS, libwebsockets is more lenient than RFC
// 6455: it takes frames without a mask, and reports a client's close codes 1012 to 1014 as 1002. All callbacks come
// from the loop. Sessions and requests may be used in any callback. One thread.
#pragma once

#include "common/base/loop.h"
#include "common/ws/ws_queue.h"
#include "common/ws/ws_request.h"
#include "common/ws/ws_server_config.h"
#include "common/ws/ws_session.h"

struct ws_server;

struct ws_server *ws_server_new(struct loop *loop, const struct ws_server_config *config, struct err *err);
// Ends everything at once, without callbacks, and turns the loop until the server is gone. Call it only outside of
// callbacks. For an orderly end, close sessions with 1001 first, and turn the loop until they have closed. Accepts
// NULL.
void ws_server_free(struct ws_server *server);

// Listens on "address:port", "[v6]:port", ":port" (all addresses) or "unix:/path" (mode 0600; a socket on which nobody
// listens is replaced). Port 0 picks one. Returns the port, 0 for a Unix socket; ERR_UNAVAILABLE, ERR_INVALID.
int ws_server_listen(struct ws_server *server, const char *address, bool tls, struct err *err);
// Sessions stay, and requests that on_http has got. Other connections are closed.
void ws_server_stop_listening(struct ws_server *server);
// The certificate (with its chain) and key for new connections. If they do not fit together, the old ones stay.
int ws_server_certificate(struct ws_server *server, const char *cert_pem, const char *key_pem, struct err *err);
const struct ws_server_counters *ws_server_counters(const struct ws_server *server);
