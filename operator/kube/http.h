// SPDX-License-Identifier: Apache-2.0
// HTTP exchanges with one server on the loop. Only this module uses libcurl. Connections are kept and shared; only
// exchanges without end have their own connection. Connections and memory that are idle for about a minute are
// released. After that, nothing wakes the loop. The caller sets deadlines.
//
// HTTP/1.1, not HTTP/2: creates were equally fast (measured with the API server 1.36, 32 in flight), and a connection
// that dies or stalls takes only one request with it. HTTP/2 would save a third of our CPU time, and the handshakes
// when many requests start at once without connections. TLS sessions make these handshakes cheap.
#pragma once

#include "common/base/loop.h"
#include "operator/kube/config.h"
#include "operator/kube/kube_request.h"

#include <stdbool.h>
#include <stddef.h>

struct http;
struct http_exchange;

struct http_result {
    int status;       // 0: no answer came
    const char *body; // NUL-terminated; valid during the callback. With data(): only if not 2xx
    size_t len;
    int64_t retry_after_ms; // 0: the server did not say
    int64_t micros;
    const struct err *err; // code 0: the exchange has ended properly, with any status
};

struct http_ops {
    // If set, takes the pieces of a 2xx body as they come. It runs inside libcurl, so it may not start or abort an
    // exchange, or free the server. Returning false ends the exchange with ERR_CANCELED.
    bool (*data)(void *ctx, const char *bytes, size_t n);
    // The end of an exchange. The loop calls it, never http_start() itself. The exchange no longer exists. The callback
    // may start and abort other exchanges.
    void (*done)(void *ctx, const struct http_result *result);
};

// The config must outlive the server. max_body: longer answers end with ERR_LIMIT.
int http_new(struct loop *loop, const struct kube_config *config, const char *user_agent, size_t max_body,
             struct http **ret, struct err *err);
void http_free(struct http *h); // no exchange may be left

void http_set_token(struct http *h, const char *token); // for exchanges that start from now on; NULL = none

// own_connection: for an exchange that may last for ever. The body of the message must live until the exchange ends.
struct http_exchange *http_start(struct http *h, const struct http_message *m, bool own_connection,
                                 const struct http_ops *ops, void *ctx);
void http_abort(struct http_exchange *x); // no callback comes after this
// Call it if an answer did not come. The host of the server may be gone, and then all connections to it are dead. No
// connection that is idle now will be used again.
void http_distrust(struct http *h);
