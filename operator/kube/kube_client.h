// SPDX-License-Identifier: Apache-2.0
// The client of the API server, on the loop. It keeps connections open. A bounded number of requests are in flight at
// once; further ones wait in order. It reads the token again when it may have changed, and after a 401. After 429 and
// 503 it tries again when Retry-After says so, a few times at most and within the request's deadline. The loop calls
// the callbacks, never kube_send() itself, and exactly once for each request. This includes requests that kube_cancel()
// ended (ERR_CANCELED), and those that kube_client_free() ends from inside. Requests have ids; the id of a finished
// request is simply unknown.
#pragma once

#include "common/base/loop.h"
#include "operator/kube/config.h"
#include "operator/kube/kube_request.h"

struct kube_client;

struct kube_client_options {
    int max_in_flight; // 0 = 32; each takes a connection
    size_t max_body;   // cap on an answer's body, 0 = 16 MiB
    // Called once for every finished HTTP exchange (also for each retry): for rest_client_* metrics. May be NULL.
    void (*observe)(void *ctx, const char *method, int http_status, int64_t micros);
    void *observe_ctx;
    // Whether what the leader decides may be sent now; asked when such a request is about to leave. NULL = always.
    bool (*may_decide)(void *ctx);
    void *may_decide_ctx;
    const char *user_agent; // NULL = "cadre-operator/<version>"
};

// The config must outlive the client. Nothing is sent yet; certificates and keys that cannot work are reported here:
// not readable, not PEM, not belonging together, expired.
int kube_client_new(struct loop *loop, const struct kube_config *config, const struct kube_client_options *options,
                    struct kube_client **ret, struct err *err);
// Not from inside a callback of this client. What its callbacks still send is dropped without an answer (id 0).
void kube_client_free(struct kube_client *c);

struct kube_response {
    int http_status;  // 2xx
    const char *body; // NUL-terminated; valid during the callback
    size_t len;
};

// err->code is 0 and response is set, or err says what happened (err->http_status, and the server's own message with
// the object's name in front) and response is NULL.
typedef void (*kube_done_fn)(void *ctx, const struct kube_response *response, const struct err *err);

// timeout_ms covers queueing and retries; 0 = 30 s. The request is copied, but for a body that it lends. At most 16,384
// requests and 64 MiB of them may be under way (ERR_LIMIT).
uint64_t kube_send(struct kube_client *c, const struct request *r, int64_t timeout_ms, kube_done_fn done, void *ctx);

// A stream (LIST page or WATCH) whose body is handed over as it arrives.
struct kube_stream_ops {
    void (*data)(void *ctx, const char *bytes, size_t n); // only after a 2xx; may send and cancel
    void (*end)(void *ctx, const struct err *err);        // err->code 0: the server ended it in good order
};
// No overall deadline; idle_ms without a byte ends it with ERR_TIMEOUT (0 = never). Not one of max_in_flight; a watch
// has a connection of its own.
uint64_t kube_stream(struct kube_client *c, const struct request *r, int64_t idle_ms, const struct kube_stream_ops *ops,
                     void *ctx);

void kube_cancel(struct kube_client *c, uint64_t id);
void kube_cancel_decided(struct kube_client *c); // all requests that the leader decided
bool kube_may_decide(const struct kube_client *c);
int kube_in_flight(const struct kube_client *c);     // sent or waiting, streams not counted
uint64_t kube_requests(const struct kube_client *c); // that were ever asked for

// GET of a path as text, such as "/version" or "/readyz": for start-up checks.
uint64_t kube_get_path(struct kube_client *c, const char *path, int64_t timeout_ms, kube_done_fn done, void *ctx);
