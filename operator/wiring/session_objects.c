// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/session_objects.h"

#include "common/base/json_writer.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/draft.h"
#include "operator/kube/inquiry.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WRITE_TIMEOUT_MS = 10 * 1000 };

struct session_objects {
    struct loop *loop;
    struct kube_client *client;
    struct loop_timer *timer;
    struct list list;
    int64_t renew_ms;
};

// A WorkerGroup or a PlacementGroup that is renewed for a session.
struct session_object {
    struct list link;
    struct session_objects *of;
    struct inquiry *inquiry;
    const void *lifetime;
    enum kind kind;
    char *ns, *name, *uid;
};

static void session_object_free(struct session_object *b)
{
    list_remove(&b->link);
    inquiry_drop(b->inquiry);
    free(b->ns);
    free(b->name);
    free(b->uid);
    free(b);
}

static void on_dropped(void *ctx, const struct kube_response *response, const struct err *err)
{
    (void)ctx, (void)response;
    if (err->code && err->code != ERR_NOT_FOUND && err->code != ERR_CANCELED)
        log_warn("the leader deletes a group whose session has ended", "error", err->msg, NULL);
}

void session_objects_drop(const struct session_objects *s, enum kind kind, const char *ns, const char *name,
                          const char *uid)
{
    const struct kube_request r = {
        .verb = VERB_DELETE, .kind = kind, .ns = ns, .name = name, .uid = uid, .grace_s = -1};
    kube_send(s->client, &r, WRITE_TIMEOUT_MS, on_dropped, NULL);
}

// Another group with the same name has another UID, and is not ours.
static const char *renewal(const struct session_objects *s, const char *uid, struct arena *a)
{
    return json_print(a, "{'metadata':{'uid':%s,'annotations':{'" ANNOTATION_SESSION_RENEWED "':'%" PRId64 "'}}}", uid,
                      loop_wall_ms(s->loop));
}

static void on_renewed(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct session_object *b = ctx;
    (void)response;
    b->inquiry = NULL;
    if (err->code == ERR_INVALID) // the API server refuses another UID
        log_warn("a group is not renewed for its session any more: another one has its name, or it cannot be changed",
                 "namespace", b->ns, "name", b->name, "error", err->msg, NULL);
    if (err->code == ERR_NOT_FOUND || err->code == ERR_INVALID)
        session_object_free(b);
    else if (err->code)
        log_warn("a group cannot be renewed for its session; the operator tries again", "error", err->msg, NULL);
}

static void renew(struct session_object *b)
{
    struct arena a = ARENA_INIT;
    const struct kube_request r = {
        .verb = VERB_PATCH_MERGE, .kind = b->kind, .ns = b->ns, .name = b->name, .body = renewal(b->of, b->uid, &a)};
    if (!b->inquiry)
        b->inquiry = inquiry_send(b->of->client, &r, WRITE_TIMEOUT_MS, on_renewed, b);
    arena_done(&a);
}

static void on_timer(void *ctx)
{
    struct session_objects *s = ctx;
    LIST_FOREACH(l, &s->list)
        renew(CONTAINER_OF(l, struct session_object, link));
    if (!list_empty(&s->list))
        loop_timer_arm(s->timer, s->renew_ms);
}

static struct session_object *session_object_find(const struct session_objects *s, const void *lifetime,
                                                  const char *uid)
{
    LIST_FOREACH(l, &s->list) {
        struct session_object *b = CONTAINER_OF(l, struct session_object, link);
        if (b->lifetime == lifetime && str_eq(b->uid, uid))
            return b;
    }
    return NULL;
}

static struct session_object *session_object_new(struct session_objects *s, const void *lifetime, enum kind kind,
                                                 const struct meta *m)
{
    struct session_object *b = xcalloc(1, sizeof *b);
    *b = (struct session_object){.of = s,
                                 .lifetime = lifetime,
                                 .kind = kind,
                                 .ns = xstrdup(m->ns),
                                 .name = xstrdup(m->name),
                                 .uid = xstrdup(m->uid)};
    list_append(&s->list, &b->link);
    return b;
}

void session_objects_add(struct session_objects *s, const void *lifetime, enum kind kind, const struct meta *m,
                         bool at_once)
{
    struct session_object *b = session_object_find(s, lifetime, m->uid);
    if (!b)
        b = session_object_new(s, lifetime, kind, m);
    if (!loop_timer_armed(s->timer))
        loop_timer_arm(s->timer, s->renew_ms);
    if (at_once)
        renew(b);
}

void session_objects_ended(struct session_objects *s, const void *lifetime, bool wanted)
{
    LIST_FOREACH(l, &s->list) {
        struct session_object *b = CONTAINER_OF(l, struct session_object, link);
        if (b->lifetime != lifetime)
            continue;
        if (!wanted)
            session_objects_drop(s, b->kind, b->ns, b->name, b->uid);
        session_object_free(b);
    }
}

struct session_objects *session_objects_new(struct loop *loop, struct kube_client *client, int64_t renew_ms)
{
    struct session_objects *s = xcalloc(1, sizeof *s);
    *s = (struct session_objects){.loop = loop, .client = client, .renew_ms = renew_ms};
    list_init(&s->list);
    s->timer = loop_timer_new(loop, on_timer, s);
    return s;
}

void session_objects_free(struct session_objects *s)
{
    LIST_FOREACH(l, &s->list)
        session_object_free(CONTAINER_OF(l, struct session_object, link));
    loop_timer_free(s->timer);
    free(s);
}
