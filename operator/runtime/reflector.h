// SPDX-License-Identifier: Apache-2.0
// Keeps a store equal to a collection of the API server. operator/kube/watch.h decides, and this module acts.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

struct reflector;

struct reflector_options {
    const char *ns;             // "" or NULL = all
    const char *label_selector; // NULL = all
    const char *field_selector;
    int32_t page_size; // 0 = 2000
    uint64_t seed;     // for timeouts and jitter
    // A list or watch has failed. It is tried again by itself. This is for the log, and is called at most once per
    // failure. May be NULL.
    void (*on_error)(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms);
    // An object could not be decoded. It is not in the store. May be NULL.
    void (*on_bad_object)(void *ctx, enum kind kind, const struct err *err);
    void (*on_complete)(void *ctx, enum kind kind); // after the first complete list
    // A list is older than what the store has seen, or has older objects: somebody has restored a backup of etcd. Only
    // an empty store can follow, so nothing is deleted from this one. May be NULL.
    void (*on_restored)(void *ctx, enum kind kind);
    void *ctx;
};

struct reflector *reflector_start(struct loop *loop, struct kube_client *client, struct store *store,
                                  const struct reflector_options *options);
// Call this when the API server is known to answer. If the reflector waits after a failure, it tries again at once.
void reflector_retry_now(struct reflector *r);
// Frees the reflector. It calls nothing after this returns. May be called inside any callback, also one of the store.
// The store stays.
void reflector_stop(struct reflector *r);
