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
void ws_request_drop_body(struct ws_request *r);                          // it was read, and takes memory
void ws_request_read(struct ws_request *r);                               // after on_head said 1; harmless otherwise
void *ws_request_owner(const struct ws_request *r);                       // ctx of ws_request_on_gone(), NULL = none
// This quota pays for all of its body, whatever has come of it yet, and for its answer, instead of what the server has
// for all requests. False, and nothing changed: it has no room for the body.
bool ws_request_charge(struct ws_request *r, struct quota *quota);
// The rest of its body is read as this owner's (ws_fair_queue.h). Before: as one of strangers.
void ws_request_for(struct ws_request *r, const char *name, unsigned weight);
// `ended` is called when its answer was taken or given up, and its memory is free.
void ws_request_on_end(struct ws_request *r, void (*ended)(void *ctx), void *ctx);
// Every request that on_head or on_http got is answered once, or gone: then `gone`, if set, is called and the request
// is no more. One request a connection. A client that hangs up meanwhile is noticed within ping_ms. extra_headers:
// lines ended by \r\n, or NULL. An answer for which who pays has no room becomes a 503, but for a short one.
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
