// SPDX-License-Identifier: Apache-2.0
// Calls an asynchronous reconcile function with keys: one run per key at a time, and many keys in parallel. Then it
// decides what follows. After an error, the key comes again after a backoff. After requeue, it comes again later. After
// success, it does not come again.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/metrics.h"

struct controller;

// The function must call controller_finish() exactly once for the key, at once or in a later turn of the loop.
typedef void (*reconcile_fn)(void *ctx, const char *key);

struct reconcile_result {
    int code; // 0, or an enum err_code: the key is tried again after a backoff
    // With code 0: the key comes again after this time; 0 = soon (backoff), -1 = only when something changes.
    int64_t requeue_ms;
};

struct controller_options {
    const char *name;   // label `controller` of the metrics; must outlive the controller
    int max_concurrent; // keys in progress at the same time, 0 = 64
    reconcile_fn reconcile;
    void *ctx;
    struct metrics *metrics; // may be NULL
};

struct controller *controller_new(struct loop *loop, const struct controller_options *options);
void controller_free(struct controller *c); // it forgets keys in progress: do not finish them later
void controller_add(struct controller *c, const char *key);
void controller_start(struct controller *c); // it gives out the keys added before (all mirrors must be complete)
void controller_stop(struct controller *c);  // gives out no more keys, and forgets those that wait; can start again
void controller_retry(struct controller *c); // call it when an obstacle is gone: failed keys come at once
bool controller_idle(const struct controller *c); // no key is in progress
void controller_finish(struct controller *c, const char *key, struct reconcile_result result);
