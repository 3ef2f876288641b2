// SPDX-License-Identifier: Apache-2.0
// Keys that wait to be reconciled, with the semantics of client-go. A key is in the queue at most once. A key that is
// being processed is not given out again. If it is added meanwhile, it returns to the queue when it is done. A delayed
// key keeps its earliest time. After failures, each key has an exponential backoff (5 ms, doubling, up to 5 minutes
// instead of 1,000 s). Pure, with an injected clock.
#pragma once

#include "common/base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct workqueue;

struct workqueue *workqueue_new(const struct clock *clock);
void workqueue_free(struct workqueue *q);

void workqueue_add(struct workqueue *q, const char *key);
void workqueue_add_after(struct workqueue *q, const char *key, int64_t ms);
int64_t workqueue_add_backoff(struct workqueue *q, const char *key); // returns the delay
void workqueue_forget(struct workqueue *q, const char *key);         // after a success: the backoff begins again
void workqueue_clear(struct workqueue *q); // forgets all keys that are not being processed, and all failures
void workqueue_retry(struct workqueue *q); // keys that wait after failures come now, as if they had not failed
// Returns the next ready key, or NULL. It is valid until workqueue_done(key).
const char *workqueue_get(struct workqueue *q);
void workqueue_done(struct workqueue *q, const char *key);
// Returns the milliseconds until a delayed key is ready: 0 = one is ready now, -1 = there is none.
int64_t workqueue_wait_ms(const struct workqueue *q);

struct workqueue_stats { // for the workqueue_* metrics; times in milliseconds
    size_t depth, processing, delayed;
    uint64_t adds, retries;
    int64_t longest_running_ms, unfinished_ms;
};
void workqueue_stats(const struct workqueue *q, struct workqueue_stats *ret);
// Sets functions for histograms: `taken` is called when a key leaves the queue (queued_ms), `done` when it is done
// (worked_ms). They may be NULL.
void workqueue_observe(struct workqueue *q, void (*taken)(void *ctx, int64_t queued_ms),
                       void (*done)(void *ctx, int64_t worked_ms), void *ctx);
