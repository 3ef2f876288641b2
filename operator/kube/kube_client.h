// SPDX-License-Identifier: Apache-2.0
// The client of the API server, on the loop. It keeps connections open. A bounded number of requests are in flight at
// once; further ones wait in order. It reads the token again when it may have changed, and after a 401. After 429 and
// 503 it tries again when Retry-After says so, a few times at most and within the request's deadline. The loop calls
// the callbacks, never kube_send() itself, and exactly once for each request. This includes requests that kube_cancel()
// ended (ERR_CANCELED), and those that kube_client_free() ends from inside. Requests have ids. The id of a finished
// request is unknown to the client.
#pragma once

#include "common/base/loop.h"
#include "operator/kube/config.h"
#include "operator/kube/kube_request.h"

struct kube_client;

struct kube_client_options {
    int max_in_flight; // 0 = 32; each takes a connection
    size_t max_body;   // cap on an answer's body, 0 = 16 MiB
    // Called once for each finished HTTP exchange, also for each retry, for the metrics rest_client_*. May be NULL.
    void (*observe)(void *ctx, const char *method, int http_status, int64_t micros);
    void *observe_ctx;
    // Returns true if requests that the leader decided may be sent now. The client asks just before it sends such a
    // request. NULL = always.
    bool (*may_decide)(void *ctx);
    void *may_decide_ctx;
    const char *user_agent; // NULL = "cadre-operator/<version>"
};

// The config must outlive the client. This sends nothing yet. It reports certificates and keys that cannot work: not
// readable, not PEM, expired, or a key of another certificate.
int kube_client_new(struct loop *loop, const struct kube_config *config, const struct kube_client_options *options,
                    struct kube_client **ret, struct err *err);
// Do not call it from a callback of this client. Requests that its callbacks send now are dropped (id 0).
void kube_client_free(struct kube_client *c);

struct kube_response {
    int http_status;  // 2xx
    const char *body; // NUL-terminated; valid during the callback
    size_t len;
};

// On success, err->code is 0 and response is set. Else response is NULL, and err has the http_status and the message of
// the server, after the name of the object.
typedef void (*kube_done_fn)(void *ctx, const struct kube_response *response, const struct err *err);

// timeout_ms includes waiting and retries; 0 = 30 s. The client copies the request, except for a lent body. At most
// 16,384 requests with together 64 MiB may be in progress (ERR_LIMIT).
uint64_t kube_send(struct kube_client *c, const struct kube_request *r, int64_t timeout_ms, kube_done_fn done,
                   void *ctx);

// A stream: a LIST page or a WATCH. The callback gets the body as it arrives.
struct kube_stream_ops {
    void (*data)(void *ctx, const char *bytes, size_t n); // only after a 2xx; may send and cancel
    void (*end)(void *ctx, const struct err *err);        // err->code 0: the server ended the stream properly
};
// A stream has no overall deadline. It ends with ERR_TIMEOUT after idle_ms without a byte (0 = never). It does not
// count for max_in_flight. A watch has its own connection.
uint64_t kube_stream(struct kube_client *c, const struct kube_request *r, int64_t idle_ms,
                     const struct kube_stream_ops *ops, void *ctx);

void kube_cancel(struct kube_client *c, uint64_t id);
void kube_cancel_decided(struct kube_client *c); // all requests that the leader decided
bool kube_may_decide(const struct kube_client *c);
int kube_in_flight(const struct kube_client *c);     // requests that are sent or waiting, without streams
uint64_t kube_requests(const struct kube_client *c); // number of all requests so far

// Sends a GET of a path such as "/version" or "/readyz", for checks at the start.
uint64_t kube_get_path(struct kube_client *c, const char *path, int64_t timeout_ms, kube_done_fn done, void *ctx);
