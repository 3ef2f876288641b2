// SPDX-License-Identifier: Apache-2.0
// Takes part in the leader election (leader.h), on a separate thread with its own connections. Neither peers nor
// thousands of writes, which keep the operator's loop and client busy, can delay a renewal. If the loop hangs for good,
// the liveness probe finds out, because it asks the loop.
#pragma once

#include "operator/runtime/leader.h"

struct election;

struct election_options {
    struct leader_options leader;     // its news come from the operator's loop, and free no election
    const struct kube_config *config; // borrowed, and read from the thread
    // As in kube_client_options, from the operator's loop. While that stands still some exchanges are not observed.
    void (*observe)(void *ctx, const char *method, int http_status, int64_t micros);
    void *observe_ctx;
};

// NULL with the reason: the client cannot be made, or there is no thread.
struct election *election_start(struct loop *loop, const struct election_options *options, struct err *err);
// It was told that it is elected, and not yet that it has lost.
bool election_is_leading(const struct election *e);
// As election_is_leading(), and the lease is not over by the clock either.
bool election_may_write(struct election *e);
// Gives the lease back as leader_release() does, then calls released from the loop. Frees itself.
void election_release(struct election *e, void (*released)(void *ctx), void *ctx);
void election_free(struct election *e); // at once, without giving back; accepts NULL
