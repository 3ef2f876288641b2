// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/stub_client.h"

#include "common/base/mem.h"
#include "operator/api/status.h"

#include <stdlib.h>
#include <string.h>

struct kube_client {
    struct loop *loop;
    struct list calls; // oldest first
    struct loop_timer *canceler;
    uint64_t last_id;
    bool refusing, may_not_decide;
};

static void call_end(struct stub_call *call, const struct kube_response *response, const struct err *err)
{
    list_remove(&call->link);
    if (call->done)
        call->done(call->ctx, response, err);
    else
        call->stream.end(call->ctx, err);
    arena_done(&call->arena);
    free(call);
}

static void end_canceled(void *ctx)
{
    struct kube_client *c = ctx;
    struct err err = ERR_INIT;
    err_set(&err, ERR_CANCELED, "canceled");
    LIST_FOREACH(l, &c->calls) {
        struct stub_call *call = CONTAINER_OF(l, struct stub_call, link);
        if (call->canceled)
            call_end(call, NULL, &err);
    }
}

struct kube_client *stub_client_new(struct loop *loop)
{
    struct kube_client *c = xcalloc(1, sizeof *c);
    c->loop = loop;
    list_init(&c->calls);
    c->canceler = loop_timer_new(loop, end_canceled, c);
    return c;
}

void stub_client_free(struct kube_client *c)
{
    while (loop_timer_armed(c->canceler))
        loop_run_once(c->loop, 0);
    loop_timer_free(c->canceler);
    if (!list_empty(&c->calls))
        abort();
    free(c);
}

void stub_client_refuse(struct kube_client *c)
{
    c->refusing = true;
}

static struct stub_call *call_new(struct kube_client *c, const struct kube_request *r, void *ctx)
{
    struct stub_call *call = xcalloc(1, sizeof *call);
    struct arena *a = &call->arena;
    call->client = c;
    call->ctx = ctx;
    call->id = ++c->last_id;
    call->request = *r;
    call->request.ns = arena_strdup(a, r->ns);
    call->request.name = arena_strdup(a, r->name);
    call->request.body = arena_strdup(a, r->body);
    call->request.label_selector = arena_strdup(a, r->label_selector);
    call->request.field_selector = arena_strdup(a, r->field_selector);
    call->request.continue_token = arena_strdup(a, r->continue_token);
    call->request.resource_version = arena_strdup(a, r->resource_version);
    call->request.uid = arena_strdup(a, r->uid);
    list_append(&c->calls, &call->link);
    return call;
}

uint64_t kube_send(struct kube_client *c, const struct kube_request *r, int64_t timeout_ms, kube_done_fn done,
                   void *ctx)
{
    if (c->refusing)
        return 0;
    struct stub_call *call = call_new(c, r, ctx);
    call->done = done;
    call->timeout_ms = timeout_ms;
    return call->id;
}

uint64_t kube_get_path(struct kube_client *c, const char *path, int64_t timeout_ms, kube_done_fn done, void *ctx)
{
    uint64_t id = kube_send(c, &(struct kube_request){.verb = VERB_GET}, timeout_ms, done, ctx);
    if (id) {
        struct stub_call *call = CONTAINER_OF(c->calls.prev, struct stub_call, link);
        call->path = arena_strdup(&call->arena, path);
    }
    return id;
}

uint64_t kube_stream(struct kube_client *c, const struct kube_request *r, int64_t idle_ms,
                     const struct kube_stream_ops *ops, void *ctx)
{
    if (c->refusing)
        return 0;
    struct stub_call *call = call_new(c, r, ctx);
    call->stream = *ops;
    call->timeout_ms = idle_ms;
    return call->id;
}

void kube_cancel(struct kube_client *c, uint64_t id)
{
    LIST_FOREACH(l, &c->calls) {
        struct stub_call *call = CONTAINER_OF(l, struct stub_call, link);
        if (call->id == id) {
            call->canceled = true;
            loop_timer_arm(c->canceler, 0);
        }
    }
}

void kube_cancel_decided(struct kube_client *c)
{
    LIST_FOREACH(l, &c->calls) {
        struct stub_call *call = CONTAINER_OF(l, struct stub_call, link);
        call->canceled = call->canceled || call->request.decided;
    }
    loop_timer_arm(c->canceler, 0);
}

bool kube_may_decide(const struct kube_client *c)
{
    return !c->may_not_decide;
}

void stub_client_may_decide(struct kube_client *c, bool may)
{
    c->may_not_decide = !may;
}

static struct stub_call *oldest(struct kube_client *c)
{
    LIST_FOREACH(l, &c->calls) {
        struct stub_call *call = CONTAINER_OF(l, struct stub_call, link);
        if (!call->canceled)
            return call;
    }
    return NULL;
}

struct stub_call *stub_next(struct kube_client *c)
{
    for (int i = 0; i < 50 && !oldest(c); i++)
        loop_run_once(c->loop, 100);
    return oldest(c);
}

int stub_waiting(const struct kube_client *c)
{
    int n = 0;
    for (const struct list *l = c->calls.next; l != &c->calls; l = l->next)
        n += !CONTAINER_OF(l, struct stub_call, link)->canceled;
    return n;
}

uint64_t kube_requests(const struct kube_client *c)
{
    return c->last_id;
}

int kube_in_flight(const struct kube_client *c)
{
    int n = 0;
    for (const struct list *l = c->calls.next; l != &c->calls; l = l->next)
        n += CONTAINER_OF(l, struct stub_call, link)->done != NULL;
    return n;
}

bool stub_quiet(struct kube_client *c)
{
    for (int i = 0; i < 5 && !oldest(c); i++)
        loop_run_once(c->loop, 1);
    return !oldest(c);
}

void stub_answer(struct stub_call *call, int status, const char *body)
{
    struct err err = ERR_INIT;
    struct kube_response response = {status, body, strlen(body)};
    api_status_err(status, body, strlen(body), &err);
    call_end(call, err.code ? NULL : &response, &err);
}

void stub_fail(struct stub_call *call, int code, const char *message)
{
    struct err err = ERR_INIT;
    err_set(&err, code, "%s", message);
    call_end(call, NULL, &err);
}

void stub_data(struct stub_call *call, const char *bytes, size_t n)
{
    if (!call->canceled)
        call->stream.data(call->ctx, bytes, n);
}

void stub_end(struct stub_call *call)
{
    struct err err = ERR_INIT;
    call_end(call, NULL, &err);
}

void stub_client_cancel(struct kube_client *c)
{
    stub_client_refuse(c);
    while (stub_waiting(c))
        stub_fail(stub_next(c), ERR_CANCELED, "canceled");
}
