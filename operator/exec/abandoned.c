// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/abandoned.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/draft.h"

#include <stdlib.h>

struct abandoned {
    struct loop *loop;
    struct kube_client *client;
    struct loop_timer *timer;
    struct map by_uid;
    struct list renewals; // the oldest is first
    int64_t after_ms;
    int in_flight;
    bool running;
};

// The last renewal of a WorkerGroup or a PlacementGroup that is deleted when its session ends.
struct renewal {
    struct list link;
    const struct object *group; // referenced; the newest version
    int64_t seen_ms;            // when this renewal arrived, by the monotonic clock
};

// A deletion that has no answer yet.
struct deletion {
    struct abandoned *abandoned;
    const struct object *group; // referenced; the version that is deleted
    int64_t seen_ms;            // when its renewal arrived
};

static const char *renewed(const struct object *group)
{
    return group->meta.deleted_ms ? NULL : labels_get(&group->meta.annotations, ANNOTATION_SESSION_RENEWED);
}

static void forget(struct abandoned *a, struct renewal *r)
{
    map_del(&a->by_uid, r->group->meta.uid);
    list_remove(&r->link);
    object_unref(r->group);
    free(r);
}

static void look_again(struct abandoned *a)
{
    enum { LOOKS = 12 }; // within after_ms
    if (a->running && !list_empty(&a->renewals) && !loop_timer_armed(a->timer))
        loop_timer_arm(a->timer, a->after_ms / LOOKS);
}

static void saw(struct abandoned *a, struct renewal *r)
{
    r->seen_ms = loop_now_ms(a->loop);
    list_remove(&r->link);
    list_append(&a->renewals, &r->link);
    look_again(a);
}

static void keep(struct abandoned *a, const struct object *group)
{
    struct renewal *r = map_get(&a->by_uid, group->meta.uid);
    bool same = r && str_eq(renewed(r->group), renewed(group));
    if (!r) {
        r = xcalloc(1, sizeof *r);
        list_init(&r->link);
        map_set(&a->by_uid, group->meta.uid, r);
    }
    object_unref(r->group);
    r->group = object_ref(group);
    if (!same)
        saw(a, r);
}

static void on_group(void *ctx, const struct object *old, const struct object *group)
{
    struct abandoned *a = ctx;
    struct renewal *r = map_get(&a->by_uid, (group ? group : old)->meta.uid);
    if (group && renewed(group))
        keep(a, group);
    else if (r)
        forget(a, r);
}

static void deletion_free(struct deletion *d)
{
    d->abandoned->in_flight--;
    object_unref(d->group);
    free(d);
}

// Any write makes a conflict, for example of the status. Only a renewal keeps the object.
static void on_conflict(const struct deletion *d)
{
    struct abandoned *a = d->abandoned;
    struct renewal *r = map_get(&a->by_uid, d->group->meta.uid);
    if (!r) // it is gone, somebody else deletes it, or it has no session any more
        return;
    bool renewed_since = !str_eq(renewed(r->group), renewed(d->group));
    log_debug(renewed_since ? "an object was renewed while it was being deleted: it stays"
                            : "an object of a session that has ended was changed while it was being deleted; the "
                              "operator tries again soon",
              "kind", kind_info(d->group->kind)->kind, "namespace", d->group->meta.ns, "name", d->group->meta.name,
              NULL);
    if (renewed_since)
        return;
    r->seen_ms = d->seen_ms;
    list_remove(&r->link);
    list_insert_before(a->renewals.next, &r->link); // the next look finds it
    look_again(a);
}

static void on_deleted(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct deletion *d = ctx;
    (void)response;
    if (err->code == ERR_CONFLICT)
        on_conflict(d);
    else if (err->code && err->code != ERR_NOT_FOUND && err->code != ERR_CANCELED)
        log_warn("an object of a session that has ended cannot be deleted; the operator tries again", "error", err->msg,
                 NULL);
    deletion_free(d);
}

static void drop(struct abandoned *a, const struct renewal *old)
{
    const struct object *group = old->group;
    const struct meta *m = &group->meta;
    struct deletion *d = xmalloc(sizeof *d);
    *d = (struct deletion){.abandoned = a, .group = object_ref(group), .seen_ms = old->seen_ms};
    struct kube_request r = request_delete(group);
    r.resource_version = m->resource_version; // a renewal that we have not seen keeps the object
    log_info("the session that created this object has ended: deleting the object", "kind",
             kind_info(group->kind)->kind, "namespace", m->ns, "name", m->name, "user",
             labels_get(&m->annotations, ANNOTATION_CREATED_BY), NULL);
    a->in_flight++;
    if (!kube_send(a->client, &r, 0, on_deleted, d))
        deletion_free(d);
}

static void look(void *ctx)
{
    struct abandoned *a = ctx;
    while (a->running && !list_empty(&a->renewals)) {
        struct renewal *r = CONTAINER_OF(a->renewals.next, struct renewal, link);
        if (loop_now_ms(a->loop) - r->seen_ms < a->after_ms)
            break;
        drop(a, r);
        saw(a, r); // if the deletion fails, it is tried again after after_ms; after a conflict, sooner
    }
    look_again(a);
}

struct abandoned *abandoned_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                                int64_t after_ms)
{
    struct abandoned *a = xcalloc(1, sizeof *a);
    *a = (struct abandoned){.loop = loop, .client = client, .after_ms = after_ms};
    list_init(&a->renewals);
    a->timer = loop_timer_new(loop, look, a);
    store_subscribe(stores[KIND_WORKERGROUP], on_group, a);
    store_subscribe(stores[KIND_PLACEMENTGROUP], on_group, a);
    return a;
}

void abandoned_start(struct abandoned *a)
{
    int64_t now = loop_now_ms(a->loop);
    a->running = true;
    LIST_FOREACH(l, &a->renewals)
        CONTAINER_OF(l, struct renewal, link)->seen_ms = now;
    look_again(a);
}

void abandoned_stop(struct abandoned *a)
{
    a->running = false;
    loop_timer_disarm(a->timer);
}

bool abandoned_idle(const struct abandoned *a)
{
    return a->in_flight == 0;
}

void abandoned_free(struct abandoned *a)
{
    if (!a)
        return;
    LIST_FOREACH(l, &a->renewals)
        forget(a, CONTAINER_OF(l, struct renewal, link));
    map_done(&a->by_uid);
    loop_timer_free(a->timer);
    free(a);
}
