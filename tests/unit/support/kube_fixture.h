// SPDX-License-Identifier: Apache-2.0
// A client and the fake API server that it speaks to, on one loop.
#pragma once

#include "common/base/buf.h"
#include "operator/kube/kube_client.h"
#include "tests/fakeapi/fakeapi.h"

struct kube_fixture {
    struct loop *loop;
    struct fakeapi *api;
    struct kube_config config;
    struct kube_client_options options;
    struct kube_client *client;
    struct certs certs;
};

// The arguments of a callback. Zeroed before the request, released by answer_done().
struct answer {
    int calls; // of the callback
    struct err err;
    int status;
    struct buf body; // of a stream: all data
    int pieces;      // of a stream: calls of data()
};
#define ANSWER_INIT ((struct answer){.body = BUF_INIT(64 * 1024 * 1024)})

struct kube_fixture *fixture_new(bool tls);
// The client is made when it is first needed, from f->config and f->options as they are then.
struct kube_client *fixture_client(struct kube_fixture *f);
void fixture_free(struct kube_fixture *f);

void answer_done(struct answer *a);
void on_answer(void *ctx, const struct kube_response *response, const struct err *err); // ctx: struct answer
extern const struct kube_stream_ops answer_stream;                                      // ctx: struct answer

uint64_t send_get(struct kube_fixture *f, const char *name, int64_t timeout_ms, struct answer *a);
uint64_t send_create(struct kube_fixture *f, const char *body, struct answer *a);
uint64_t send_watch(struct kube_fixture *f, int64_t idle_ms, struct answer *a);

void assert_message(const struct answer *a, int code, const char *part); // one error, which says that

// Turn the loop until the callback came; false if it did not come for a long time.
bool answer_wait(struct kube_fixture *f, const struct answer *a);
bool fixture_wait_count(struct kube_fixture *f, int requests); // until the server has read so many
bool fixture_wait_streams(struct kube_fixture *f, int streams);
void fixture_turn(struct kube_fixture *f, int turns); // what is due now, and no more
