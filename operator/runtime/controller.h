// SPDX-License-Identifier: Apache-2.0
// Calls an asynchronous reconcile function with keys, one run per key at a time and many keys in parallel. Then it
// decides what follows: after an error, again after a backoff; after requeue, again later; after success, nothing.
#pragma once

#include "common/base/loop.h"
#include "operator/runtime/metrics.h"

struct controller;

// Must call controller_finish() exactly once for the key, now or from a later turn of the loop.
typedef void (*reconcile_fn)(void *ctx, const char *key);

struct reconcile_result {
    int code;           // 0, or an enum err_code: try again with backoff
    int64_t requeue_ms; // with code 0: look again after so long, 0 = soon (backoff), -1 = only when something changes
};

struct controller_options {
    const char *name;   // label `controller` of the metrics; must outlive the controller
    int max_concurrent; // keys in progress at once, 0 = 64
    reconcile_fn reconcile;
    void *ctx;
    struct metrics *metrics; // may be NULL
};

struct controller *controller_new(struct loop *loop, const struct controller_options *options);
void controller_free(struct controller *c); // keys in progress are forgotten: finish them first or never
void controller_add(struct controller *c, const char *key);
void controller_start(struct controller *c); // keys added before wait for it (all caches must be synced)
void controller_stop(struct controller *c); // gives out no more keys, and forgets those that wait; may be started again
void controller_retry(struct controller *c);      // keys that failed come at once: what was in the way is over
bool controller_idle(const struct controller *c); // nothing in progress
void controller_finish(struct controller *c, const char *key, struct reconcile_result result);
