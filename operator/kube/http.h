// SPDX-License-Identifier: Apache-2.0
// HTTP exchanges with one server on the loop. Only this module uses libcurl. Connections are kept and shared; only
// exchanges without end have their own connection. Connections and memory that are idle for about a minute are
// released. After that, nothing wakes the loop. The caller sets deadlines.
//
// HTTP/1.1, not HTTP/2: creates were equally fast (measured with the API server 1.36, 32 in flight), and a connection
// that dies or stalls takes only one request with it. HTTP/2 would save a third of our CPU time, and the handshakes
// when many requests start at once without connections. TLS sessions make those cheap.
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
    int64_t retry_after_ms; // 0: not said
    int64_t micros;
    const struct err *err; // code 0: the exchange came to its end, whatever the status
};

struct http_ops {
    // If set, takes the pieces of a 2xx body as they come. Runs inside libcurl: may not start, abort or free anything
    // of this server's; false ends the exchange with ERR_CANCELED.
    bool (*data)(void *ctx, const char *bytes, size_t n);
    // The last word about an exchange, never from inside http_start(); the exchange is gone. May start and abort
    // others.
    void (*done)(void *ctx, const struct http_result *result);
};

// The config must outlive it. max_body: longer answers end with ERR_LIMIT.
int http_new(struct loop *loop, const struct kube_config *config, const char *user_agent, size_t max_body,
             struct http **ret, struct err *err);
void http_free(struct http *h); // no exchange may be left

void http_set_token(struct http *h, const char *token); // of exchanges started from now on; NULL = none

// own_connection: for what may last for ever. The message's body must live until the exchange is gone.
struct http_exchange *http_start(struct http *h, const struct http_message *m, bool own_connection,
                                 const struct http_ops *ops, void *ctx);
void http_abort(struct http_exchange *x); // no callback comes any more
// An answer stayed out: the server's host may be gone, and then all that is connected to it is dead without knowing.
// What has been idle since before now is not used again.
void http_distrust(struct http *h);
