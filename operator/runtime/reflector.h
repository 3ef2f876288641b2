// SPDX-License-Identifier: Apache-2.0
// Keeps a store equal to a collection of the API server. operator/kube/watch.h decides, this module acts.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/runtime/store.h"

struct reflector;

struct reflector_options {
    const char *ns;             // "" or NULL = all
    const char *label_selector; // NULL = all
    const char *field_selector;
    int32_t page_size; // 0 = 2000
    uint64_t seed;     // of timeouts and jitter
    // A list or watch failed (it is tried again by itself). For the log; at most once a failure. May be NULL.
    void (*on_error)(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms);
    // An object could not be decoded: it is left out of the store, never silently. May be NULL.
    void (*on_bad_object)(void *ctx, enum kind kind, const struct err *err);
    void (*on_synced)(void *ctx, enum kind kind); // after the first complete list
    void *ctx;
};

struct reflector *reflector_start(struct loop *loop, struct kube_client *client, struct store *store,
                                  const struct reflector_options *options);
// What waits after failures is tried now: the API server is known to answer.
void reflector_hurry(struct reflector *r);
// Frees; no callback after it returns. May be called in any callback, also one of the store's. The store stays.
void reflector_stop(struct reflector *r);
