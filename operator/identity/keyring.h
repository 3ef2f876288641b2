// SPDX-License-Identifier: Apache-2.0
// The public keys with which the cluster signs ServiceAccount tokens, and the pods that those tokens name. Pods cost no
// requests: the keys are read at the start, about once an hour, and when a token names a new key.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/kube/kube_client.h"

struct keyring;

struct keyring_options {
    const char *audience;
    int64_t refresh_ms;             // 0 = an hour
    int64_t retry_ms, retry_max_ms; // after a failure, doubling; 0 = a second, 5 s
    int64_t gap_ms;                 // unknown keys are asked for at most so often, 0 = 10 s
    uint64_t seed;
    void (*on_error)(void *ctx, const struct err *err); // the keys cannot be read; it is tried again. May be NULL
    void *ctx;
};

// The client must outlive it; the options are copied.
struct keyring *keyring_new(struct loop *loop, struct kube_client *client, const struct keyring_options *options);
void keyring_free(struct keyring *k);  // not from inside a callback
void keyring_hurry(struct keyring *k); // after failures: the API server answers again

// As authority.h's `pod`. A token signed by an unknown key is ERR_UNAVAILABLE until the API server has been asked for
// new ones, then ERR_UNAUTHORIZED.
int keyring_pod(struct keyring *k, const char *token, struct arena *a, struct pod_claims *ret, struct err *err);
// jwt_check() of a client's token with the cluster's keys, of any issuer that has them. Asks nobody; ERR_NOT_FOUND
// also while there are no keys.
int keyring_check(const struct keyring *k, const char *token, struct err *err);
