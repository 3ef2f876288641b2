// SPDX-License-Identifier: Apache-2.0
// A kube_client without a network: keeps what is asked of it until the test answers. Linked instead of the real one.
#pragma once

#include "common/base/list.h"
#include "operator/kube/kube_client.h"

struct stub_call {
    struct list link;
    struct kube_client *client;
    struct arena arena;          // owns the request's strings
    struct kube_request request; // as it was asked
    const char *path;            // of kube_get_path(), else NULL
    int64_t timeout_ms;
    uint64_t id;
    kube_done_fn done;
    struct kube_stream_ops stream; // of a stream, else NULLs
    void *ctx;
    bool canceled; // ends with ERR_CANCELED on the loop's next turn
};

struct kube_client *stub_client_new(struct loop *loop);
void stub_client_free(struct kube_client *c);   // every call must have ended
void stub_client_refuse(struct kube_client *c); // sends nothing more, as while it is taken down

void stub_client_may_decide(struct kube_client *c, bool may);
void stub_client_cancel(struct kube_client *c); // likewise, and ends what waits for an answer

// Turns the loop until a call waits for its answer, and returns the oldest one; NULL if nothing is asked in 50 turns.
struct stub_call *stub_next(struct kube_client *c);
int stub_waiting(const struct kube_client *c); // calls that wait for an answer
bool stub_quiet(struct kube_client *c);        // after a few turns nothing is asked

// The end of a call; the call is gone then. status 2xx: success with that body.
void stub_answer(struct stub_call *call, int status, const char *body);
void stub_fail(struct stub_call *call, int code, const char *message);
// For a stream: bytes, then its good end.
void stub_data(struct stub_call *call, const char *bytes, size_t n);
void stub_end(struct stub_call *call);
