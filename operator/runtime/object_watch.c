// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/object_watch.h"

#include "common/base/mem.h"
#include "operator/runtime/reflector.h"

#include <stdlib.h>

enum { TELL_AGAIN_MS = 60 * 1000 };

struct object_watch {
    struct loop *loop;
    struct object_watch_options options;
    struct store *store;
    struct reflector *reflector;
    int64_t told_ms; // when it reported an error last
};

static void on_event(void *ctx, const struct object *old, const struct object *now)
{
    const struct object_watch *w = ctx;
    (void)old, (void)now;
    w->options.on_change(w->options.ctx);
}

static void on_error(void *ctx, enum kind kind, const struct err *err, int64_t retry_ms)
{
    struct object_watch *w = ctx;
    int64_t now_ms = loop_now_ms(w->loop);
    (void)kind, (void)retry_ms;
    if (w->told_ms && now_ms < w->told_ms + TELL_AGAIN_MS)
        return;
    w->told_ms = now_ms;
    w->options.on_error(w->options.ctx, err);
}

struct object_watch *object_watch_new(struct loop *loop, struct kube_client *client,
                                      const struct object_watch_options *options)
{
    struct object_watch *w = xcalloc(1, sizeof *w);
    _cleanup_(free_p) char *selector = xasprintf("metadata.name=%s", options->name);
    w->loop = loop;
    w->options = *options;
    w->store = store_new(options->kind);
    store_subscribe(w->store, on_event, w);
    w->reflector = reflector_start(
        loop, client, w->store,
        &(struct reflector_options){
            .ns = options->ns, .field_selector = selector, .seed = options->seed, .on_error = on_error, .ctx = w});
    return w;
}

void object_watch_retry_now(struct object_watch *w)
{
    reflector_retry_now(w->reflector);
}

void object_watch_free(struct object_watch *w)
{
    if (!w)
        return;
    reflector_stop(w->reflector);
    store_free(w->store);
    free(w);
}
