// SPDX-License-Identifier: Apache-2.0
// An HTTP request to a server. The upgrade to a websocket is one, too.
#pragma once

#include "common/wire/parts.h"

struct ws_connection;
struct ws_request;

// Valid during on_upgrade, on_head and on_http; strings as long as the request.
const char *ws_request_method(const struct ws_request *r);
const char *ws_request_path(const struct ws_request *r);                  // decoded, without the query
const char *ws_request_header(struct ws_request *r, const char *name);    // lower case; NULL = not there
const char *ws_request_peer(struct ws_request *r);                        // address of the client, "" for a Unix socket
bool ws_request_is_unix(const struct ws_request *r);                      // it came over a Unix socket
const char *ws_request_body(const struct ws_request *r, size_t *ret_len); // NUL-terminated
void ws_request_drop_body(struct ws_request *r);                          // it was read, and would only take memory
void ws_request_read(struct ws_request *r);                               // after on_head said 1; harmless otherwise
void *ws_request_owner(const struct ws_request *r);                       // ctx of ws_request_on_gone(), NULL = none
// This quota pays for all of the body, even if not all of it has come, and for the answer. The server's quota for all
// requests no longer does. False if it has no room for the body; then nothing changes.
bool ws_request_charge(struct ws_request *r, struct quota *quota);
// The rest of its body is read as this owner's (ws_fair_queue.h). Before, the owner is "".
void ws_request_for(struct ws_request *r, const char *name, unsigned weight);
// `ended` is called when its answer was sent or given up, and its memory is free.
void ws_request_on_end(struct ws_request *r, void (*ended)(void *ctx), void *ctx);
// Each request that on_head or on_http got is answered once, or is gone: then `gone`, if set, is called, and the
// request must not be used any more. One request for each connection. If a client hangs up meanwhile, this is noticed
// within ping_ms. extra_headers: lines ended by \r\n, or NULL. If the quota that pays has no room for an answer, the
// answer becomes a 503, unless it is short.
void ws_request_on_gone(struct ws_request *r, void (*gone)(void *ctx, struct ws_request *r), void *ctx);
void ws_request_respond(struct ws_request *r, int status, const char *content_type, const char *extra_headers,
                        const void *body, size_t len);
// The same with a body that is not copied; *body is empty on return.
void ws_request_respond_parts(struct ws_request *r, int status, const char *content_type, struct parts *body);

// For ws_server.c: the events of libwebsockets. Non-zero closes the connection.
int ws_request_upgrade(struct ws_connection *c, const char *protocol);
int ws_request_begin(struct ws_connection *c);
int ws_request_piece(struct ws_connection *c, const void *data, size_t len);
int ws_request_complete(struct ws_connection *c);
int ws_request_writable(struct ws_connection *c);
void ws_request_end(struct ws_request *r);
void ws_request_sweep(struct ws_request *r);
