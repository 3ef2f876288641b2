// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/placementgroup_controller.h"

#include "common/base/log.h"
#include "common/base/mem.h"
#include "operator/reconcile/placementgroup.h"
#include "operator/runtime/controller.h"

#include <stdlib.h>
#include <string.h>

struct placementgroup_controller {
    struct kube_client *client;
    struct store *store;
    struct controller *controller;
    const struct clock *clock;
    bool started; // before, a standby would collect the keys of all objects that ever came and went
};

struct write {
    struct placementgroup_controller *c;
    char *key;
};

static void wake(void *ctx, const struct object *o)
{
    struct placementgroup_controller *c = ctx;
    char *key = xasprintf("%s/%s", o->meta.ns, o->meta.name);
    controller_add(c->controller, key);
    free(key);
}

static void on_event(void *ctx, enum store_event event, const struct object *old, const struct object *now)
{
    (void)old;
    const struct placementgroup_controller *c = ctx;
    if (event != STORE_DELETED && c->started)
        wake(ctx, now);
}

static void on_written(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct write *w = ctx;
    (void)response;
    int code = err->code == ERR_NOT_FOUND ? 0 : err->code;
    if (code && code != ERR_CANCELED)
        log_warn("the status of a PlacementGroup could not be written and is tried again", "placementgroup", w->key,
                 "error", err->msg, NULL);
    controller_finish(w->c->controller, w->key, (struct reconcile_result){code, -1});
    free(w->key);
    free(w);
}

static void reconcile(void *ctx, const char *key)
{
    struct placementgroup_controller *c = ctx;
    struct arena a = ARENA_INIT;
    const char *slash = strchr(key, '/');
    const char *ns = arena_strndup(&a, key, (size_t)(slash - key));
    const struct object *o = store_get(c->store, ns, slash + 1);
    const char *patch = o ? placementgroup_reconcile(placementgroup_of(o), clock_wall_ms(c->clock), &a) : NULL;
    if (patch) {
        struct write *w = xmalloc(sizeof *w);
        *w = (struct write){c, xstrdup(key)};
        struct request r = {.verb = VERB_PATCH_MERGE,
                            .kind = KIND_PLACEMENTGROUP,
                            .ns = ns,
                            .name = slash + 1,
                            .subresource = "status",
                            .body = patch};
        kube_send(c->client, &r, 0, on_written, w);
    } else {
        controller_finish(c->controller, key, (struct reconcile_result){0, -1});
    }
    arena_done(&a);
}

struct placementgroup_controller *placementgroup_controller_new(struct loop *loop, struct kube_client *client,
                                                                struct store *store, struct metrics *metrics,
                                                                const struct clock *clock)
{
    struct placementgroup_controller *c = xcalloc(1, sizeof *c);
    c->client = client;
    c->store = store;
    c->clock = clock;
    c->controller = controller_new(
        loop,
        &(struct controller_options){.name = "placementgroup", .reconcile = reconcile, .ctx = c, .metrics = metrics});
    store_subscribe(store, on_event, c);
    return c;
}

void placementgroup_controller_start(struct placementgroup_controller *c)
{
    c->started = true;
    store_each(c->store, wake, c);
    controller_start(c->controller);
}

void placementgroup_controller_stop(struct placementgroup_controller *c)
{
    controller_stop(c->controller);
}

bool placementgroup_controller_idle(const struct placementgroup_controller *c)
{
    return controller_idle(c->controller);
}

void placementgroup_controller_free(struct placementgroup_controller *c)
{
    if (!c)
        return;
    controller_free(c->controller);
    free(c);
}
