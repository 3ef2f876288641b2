// SPDX-License-Identifier: Apache-2.0
// Reports when one object is created, changes or is deleted. It keeps nothing of its content.
#pragma once

#include "operator/kube/kube_client.h"

struct object_watch;

struct object_watch_options {
    enum kind kind;
    const char *ns, *name;
    uint64_t seed;
    void (*on_change)(void *ctx); // also when it sees the object first
    // The watch has failed, and is tried again. Called at most once a minute.
    void (*on_error)(void *ctx, const struct err *err);
    void *ctx;
};

// The client must outlive it; the options are copied.
struct object_watch *object_watch_new(struct loop *loop, struct kube_client *client,
                                      const struct object_watch_options *options);
void object_watch_retry_now(struct object_watch *w); // call it when the API server answers again
void object_watch_free(struct object_watch *w);      // accepts NULL
