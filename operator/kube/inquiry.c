// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/inquiry.h"

#include "common/base/mem.h"

#include <stdlib.h>

struct inquiry {
    struct kube_client *client;
    uint64_t id;
    kube_done_fn done; // NULL: dropped. The client still calls back once
    void *ctx;
};

static void on_answer(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct inquiry *q = ctx;
    kube_done_fn done = q->done;
    void *done_ctx = q->ctx;
    free(q);
    if (done)
        done(done_ctx, response, err);
}

static struct inquiry *inquiry_new(struct kube_client *client, kube_done_fn done, void *ctx)
{
    struct inquiry *q = xmalloc(sizeof *q);
    *q = (struct inquiry){client, 0, done, ctx};
    return q;
}

static struct inquiry *inquiry_sent(struct inquiry *q, uint64_t id)
{
    q->id = id;
    if (id)
        return q;
    free(q);
    return NULL;
}

struct inquiry *inquiry_send(struct kube_client *client, const struct kube_request *r, int64_t timeout_ms,
                             kube_done_fn done, void *ctx)
{
    struct inquiry *q = inquiry_new(client, done, ctx);
    return inquiry_sent(q, kube_send(client, r, timeout_ms, on_answer, q));
}

struct inquiry *inquiry_get_path(struct kube_client *client, const char *path, int64_t timeout_ms, kube_done_fn done,
                                 void *ctx)
{
    struct inquiry *q = inquiry_new(client, done, ctx);
    return inquiry_sent(q, kube_get_path(client, path, timeout_ms, on_answer, q));
}

void inquiry_drop(struct inquiry *q)
{
    if (!q)
        return;
    q->done = NULL;
    kube_cancel(q->client, q->id);
}
