// SPDX-License-Identifier: Apache-2.0
// May the owner of a token call workers in a namespace? Asks the API server. Equal questions at the same time are asked
// once. Answers are kept for some seconds, in bounded memory and under a hash: no token is kept. Tokens that are
// obviously wrong are refused without the API server. Unknown tokens wait in their own queue and do not delay known
// ones.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/kube/kube_client.h"

struct access;

struct access_options {
    const char *audience;
    // What can be told of a token without asking: 0 = it is good as far as that goes; ERR_UNAUTHORIZED = it is not;
    // ERR_NOT_FOUND = nothing. NULL: nothing, of any.
    int (*check)(void *ctx, const char *token, struct err *err);
    void *ctx;
    int64_t allowed_ms, denied_ms; // how long answers are kept; 0 = 10 s and 5 s
    size_t max_questions;          // kept and under way, 0 = 1,024; half of it at most for tokens that may be anything
    size_t max_doubtful;           // of those, that the API server is asked about at a time; 0 = 16
    size_t max_waiters;            // for answers, all together, 0 = 4,096
};

// The client must outlive it; the options are copied.
struct access *access_new(struct loop *loop, struct kube_client *client, const struct access_options *options);
void access_free(struct access *a); // not from inside a callback; who still waits is not called

// As authority.h's `client`: answers at once and returns 0, or later and returns an id. What the API server cannot
// be asked is tried once more and then answered with ERR_UNAVAILABLE. done may ask and cancel.
uint64_t access_ask(struct access *a, const char *token, const char *ns, authority_done_fn done, void *ctx);
void access_cancel(struct access *a, uint64_t id); // an id that was answered is simply unknown
