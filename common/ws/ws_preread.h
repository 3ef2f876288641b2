// SPDX-License-Identifier: Apache-2.0
// Connections without a request. Those that have sent nothing yet are counted and limited here, before
// libwebsockets gets them, because it walks lists of all its connections. The others are read here first, a few in a
// turn, so that the first line of each request is checked before libwebsockets reads it.
#pragma once

#include "common/ws/ws_server_state.h"

int ws_preread_new(struct ws_server *server, struct err *err);
void ws_preread_free(struct ws_server *server);
void ws_preread_begin(struct ws_server *server); // before each turn
void ws_preread_clear(struct ws_preread *p);
unsigned ws_preread_count(const struct ws_preread *p);
// Passes it to libwebsockets when it sends something. False: it cannot.
bool ws_preread_take(struct ws_listener *l, int fd);
bool ws_preread_drop_oldest(struct ws_preread *p); // false: there is none

// Hands it to libwebsockets (ws_connection_adopt()). `refused`: the path of its request is not accepted. With TLS, the
// first line of the request is read after the handshake.
void ws_preread_adopt(struct ws_listener *l, int fd, bool refused);
void ws_preread_watch(struct ws_server *server, SSL_CTX *ctx); // of a listener with TLS
void ws_preread_forget(struct ws_connection *c);               // the connection ends
