// SPDX-License-Identifier: Apache-2.0
// Asks the API server if the owner of a token may call workers in a namespace. Asks equal questions at the same time
// only once. Keeps answers for some seconds, in bounded memory, and by a hash instead of the token. Refuses tokens that
// are obviously wrong without the API server. Unknown tokens wait in their own queue and do not delay known ones.
#pragma once

#include "operator/gateway/authority.h"
#include "operator/kube/kube_client.h"

struct access;

struct access_options {
    const char *audience;
    // Checks a token without the API server. 0 = the token seems good; ERR_UNAUTHORIZED = it is not; ERR_NOT_FOUND =
    // unknown. NULL: all tokens are unknown.
    int (*check)(void *ctx, const char *token, struct err *err);
    void *ctx;
    int64_t allowed_ms, denied_ms; // how long answers are kept; 0 = 10 s and 5 s
    size_t max_questions;          // kept and in progress, 0 = 1,024; unknown tokens get at most half of it
    size_t max_doubtful;           // questions about unknown tokens that are sent at a time; 0 = 16
    size_t max_waiters;            // callbacks that wait for answers, 0 = 4,096
};

// The client must outlive the result. The options are copied.
struct access *access_new(struct loop *loop, struct kube_client *client, const struct access_options *options);
void access_free(struct access *a); // do not call it from a callback; callbacks that still wait are not called

// Works like `client` of authority.h: it answers at once and returns 0, or it answers later and returns an id. If a
// request to the API server fails, it tries once more, then answers ERR_UNAVAILABLE. `done` may ask and cancel.
uint64_t access_ask(struct access *a, const char *token, const char *ns, authority_done_fn done, void *ctx);
void access_cancel(struct access *a, uint64_t id); // ignores the id of an answered question
