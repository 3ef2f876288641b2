// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/pod_reaper.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdlib.h>

// Thousands of pods may go at the same time. Other writes must not wait for all of them.
enum { IN_FLIGHT_MAX = 32 };

struct pod_reaper {
    struct kube_client *client;
    const struct store *pods;
    struct list waiting; // struct deletion
    int in_flight;
    bool running;
};

struct deletion {
    struct list link;
    struct pod_reaper *reaper;
    const struct object *pod; // referenced
};

static void deletion_free(struct deletion *c)
{
    list_remove(&c->link);
    object_unref(c->pod);
    free(c);
}

static void advance(struct pod_reaper *r);

static void on_deleted(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct deletion *c = ctx;
    struct pod_reaper *r = c->reaper;
    (void)response;
    // ERR_CONFLICT: the pod has changed since we saw it. Somebody may have removed its owner, and then it stays.
    if (err->code && err->code != ERR_NOT_FOUND && err->code != ERR_CONFLICT && err->code != ERR_CANCELED)
        log_warn("the garbage collector deletes a pod of a deleted object", "error", err->msg, NULL);
    r->in_flight--;
    deletion_free(c);
    advance(r);
}

// Returns the pod in its current version. Returns NULL if it needs no deletion: it is gone, is being deleted, or has
// another owner.
static const struct object *still_there(const struct pod_reaper *r, const struct meta *seen)
{
    const struct object *now = store_get(r->pods, seen->ns, seen->name);
    bool same = now && str_eq(now->meta.uid, seen->uid) && str_eq(now->meta.owner.uid, seen->owner.uid);
    return same && !now->meta.deleted_ms ? now : NULL;
}

static void delete_pod(struct pod_reaper *r, struct deletion *c)
{
    const struct object *now = still_there(r, &c->pod->meta);
    if (!now) {
        deletion_free(c);
        return;
    }
    struct kube_request request = request_delete(now);
    request.resource_version = now->meta.resource_version;
    list_remove(&c->link);
    r->in_flight++;
    if (!kube_send(r->client, &request, 0, on_deleted, c)) { // the client is being freed
        r->in_flight--;
        deletion_free(c);
    }
}

static void advance(struct pod_reaper *r)
{
    while (r->running && r->in_flight < IN_FLIGHT_MAX && !list_empty(&r->waiting))
        delete_pod(r, CONTAINER_OF(r->waiting.next, struct deletion, link));
}

static void on_owner(void *ctx, const struct object *old, const struct object *now)
{
    struct pod_reaper *r = ctx;
    if (now || !r->running)
        return;
    struct arena a = ARENA_INIT;
    const struct object *const *owned;
    size_t n = store_by_owner(r->pods, &old->meta, &a, &owned);
    for (size_t i = 0; i < n; i++) {
        if (owned[i]->meta.deleted_ms)
            continue;
        struct deletion *c = xcalloc(1, sizeof *c);
        *c = (struct deletion){.reaper = r, .pod = object_ref(owned[i])};
        list_append(&r->waiting, &c->link);
    }
    arena_done(&a);
    advance(r);
}

struct pod_reaper *pod_reaper_new(struct kube_client *client, struct store *const *stores)
{
    struct pod_reaper *r = xcalloc(1, sizeof *r);
    *r = (struct pod_reaper){.client = client, .pods = stores[KIND_POD]};
    list_init(&r->waiting);
    store_subscribe(stores[KIND_WORKERGROUP], on_owner, r);
    store_subscribe(stores[KIND_PLACEMENTGROUP], on_owner, r);
    return r;
}

void pod_reaper_start(struct pod_reaper *r)
{
    r->running = true;
}

void pod_reaper_stop(struct pod_reaper *r)
{
    r->running = false;
    while (!list_empty(&r->waiting))
        deletion_free(CONTAINER_OF(r->waiting.next, struct deletion, link));
}

bool pod_reaper_idle(const struct pod_reaper *r)
{
    return r->in_flight == 0;
}

void pod_reaper_free(struct pod_reaper *r)
{
    if (!r)
        return;
    pod_reaper_stop(r);
    free(r);
}
