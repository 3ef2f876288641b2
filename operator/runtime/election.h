// SPDX-License-Identifier: Apache-2.0
// Takes part in the leader election (leader.h), on a separate thread with its own connections. Neither peers nor
// thousands of writes can delay a renewal, although they keep the operator's loop and client busy. If the loop hangs
// for good, the liveness probe notices, because it asks the loop.
#pragma once

#include "operator/runtime/leader.h"

struct election;

struct election_options {
    struct leader_options leader;     // its news() runs on the operator's loop, and must not free the election
    const struct kube_config *config; // borrowed; the thread reads it
    // As in kube_client_options, but called by the operator's loop. While that loop is blocked, some exchanges are not
    // observed.
    void (*observe)(void *ctx, const char *method, int http_status, int64_t micros);
    void *observe_ctx;
};

// Returns NULL with the reason in `err` if the client cannot be created or the thread cannot start.
struct election *election_start(struct loop *loop, const struct election_options *options, struct err *err);
// Returns true if the loop has heard that this replica was elected, and not yet that it lost.
bool election_is_leading(const struct election *e);
// Returns true if election_is_leading() is true and the Lease has not expired by the clock.
bool election_may_write(struct election *e);
// Releases the Lease as leader_release() does. Then the loop calls `released`. Frees itself.
void election_release(struct election *e, void (*released)(void *ctx), void *ctx);
void election_free(struct election *e); // frees it at once without releasing the Lease; accepts NULL
