// SPDX-License-Identifier: Apache-2.0
// The public keys of the cluster for ServiceAccount tokens, and the pods that these tokens name. A pod needs no
// request: the keyring reads the keys at the start, about once an hour, and when a token names a new key.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/kube/kube_client.h"

struct keyring;

struct keyring_options {
    const char *audience;
    int64_t refresh_ms;             // 0 = an hour
    int64_t retry_ms, retry_max_ms; // after a failure, doubling; 0 = a second, 5 s
    int64_t gap_ms;                 // between two requests for unknown keys, 0 = 10 s
    uint64_t seed;
    void (*on_error)(void *ctx, const struct err *err); // the keys cannot be read. The keyring tries again. May be NULL
    void *ctx;
};

// The client must outlive the result. The options are copied.
struct keyring *keyring_new(struct loop *loop, struct kube_client *client, const struct keyring_options *options);
void keyring_free(struct keyring *k);      // do not call it from a callback
void keyring_retry_now(struct keyring *k); // call it if the API server answers again

// Works like `pod` of authority.h. A token with an unknown key gives ERR_UNAVAILABLE until the API server has answered
// a request for new keys, then ERR_UNAUTHORIZED.
int keyring_pod(struct keyring *k, const char *token, struct arena *a, struct pod_claims *ret, struct err *err);
// Calls jwt_check() for a client's token with the keys of the cluster and any issuer. It sends no request.
// ERR_NOT_FOUND also if there are no keys yet.
int keyring_check(const struct keyring *k, const char *token, struct err *err);
