// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/provision.h"

#include "common/base/json_writer.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"
#include "operator/api/draft.h"
#include "operator/api/node.h"
#include "operator/api/object_decode.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/identity/review.h"
#include "operator/kube/inquiry.h"
#include "operator/reconcile/bundles.h"
#include "operator/reconcile/ranges.h"
#include "operator/reconcile/reason.h"
#include "operator/wiring/session_objects.h"

#include <stdlib.h>
#include <string.h>

enum { REVIEW_TIMEOUT_MS = 5 * 1000, WRITE_TIMEOUT_MS = 10 * 1000 };

#define ADVICE "bind the chart's ClusterRole that ends in -edit to it there"

static const struct right restarting = {KIND_WORKERGROUP, "patch", NULL, "restart WorkerGroups", ADVICE};
static const struct right rights[][2] = {
    // the right to create, the right to delete
    [KIND_WORKERGROUP] = {{KIND_WORKERGROUP, "create", NULL, "create WorkerGroups", ADVICE},
                          {KIND_WORKERGROUP, "delete", NULL, "delete WorkerGroups", ADVICE}},
    [KIND_PLACEMENTGROUP] = {{KIND_PLACEMENTGROUP, "create", NULL, "create PlacementGroups", ADVICE},
                             {KIND_PLACEMENTGROUP, "delete", NULL, "delete PlacementGroups", ADVICE}},
};

struct provisioning {
    struct loop *loop;
    struct kube_client *client;
    struct store *const *stores;
    struct list changes;
    struct session_objects *objects;
};

// A request of a client that has no answer yet.
struct pending_change {
    struct list link;
    struct provisioning *provisioning;
    struct inquiry *inquiry;
    const struct right *right; // its `kind` is the kind of the object
    const void *lifetime;      // NULL = detached, or the session has ended
    bool bound, unwanted;      // bound: it ends with a session; unwanted: that session has ended for good
    char *ns, *name, *user, *hash;
    char *manifest, *patch; // to create, to restart; both NULL = to delete
    enum verb how;          // the verb of the patch
    provisioner_done_fn done;
    void *done_ctx;
};

static void pending_change_free(struct pending_change *c)
{
    list_remove(&c->link);
    inquiry_drop(c->inquiry);
    free(c->ns);
    free(c->name);
    free(c->user);
    free(c->hash);
    free(c->manifest);
    free(c->patch);
    free(c);
}

// Ends the request with JSON, or with an error. `err` must not be part of the request, which is freed.
static void answer(struct pending_change *c, const char *json, const struct err *err)
{
    provisioner_done_fn done = c->done;
    void *ctx = c->done_ctx;
    pending_change_free(c);
    done(ctx, json, json ? strlen(json) : 0, err);
}

// Creating

// The object exists and belongs to this client.
static void settle(struct pending_change *c, const struct meta *m, bool again)
{
    struct arena a = ARENA_INIT;
    if (c->bound && c->lifetime)
        session_objects_add(c->provisioning->objects, c->lifetime, c->right->kind, m, again);
    else if (c->bound && c->unwanted)
        session_objects_drop(c->provisioning->objects, c->right->kind, m->ns, m->name, m->uid);
    answer(c, draft_answer(m->ns, m->name, m->uid, !c->bound, &a), &(struct err){0});
    arena_done(&a);
}

// The same request came again: the client has come back, or did not get the answer.
static void take_over(struct pending_change *c, const struct err *err)
{
    const struct object *there = store_get(c->provisioning->stores[c->right->kind], c->ns, c->name);
    const char *kind = kind_info(c->right->kind)->kind;
    const struct labels *had = there ? &there->meta.annotations : NULL;
    struct err why = *err;
    if (!there)
        err_set(&why, ERR_UNAVAILABLE, "%s; this replica does not know it yet: try again", err->msg);
    else if (there->meta.deleted_ms)
        err_set(&why, ERR_UNAVAILABLE, "%s %s/%s is being deleted: try again", kind, c->ns, c->name);
    else if (!str_eq(labels_get(had, ANNOTATION_CREATED_BY), c->user) ||
             !str_eq(labels_get(had, ANNOTATION_MANIFEST_HASH), c->hash) ||
             c->bound != (labels_get(had, ANNOTATION_SESSION_RENEWED) != NULL))
        err_set(&why, ERR_EXISTS,
                "a %s %s/%s exists already, and this request did not create it; delete it or choose another name", kind,
                c->ns, c->name);
    else {
        settle(c, &there->meta, true);
        return;
    }
    answer(c, NULL, &why);
}

static void on_created(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct pending_change *c = ctx;
    const struct object *made;
    struct err why = *err;
    c->inquiry = NULL;
    if (why.code == ERR_EXISTS) {
        take_over(c, &why);
    } else if (why.code || object_decode(c->right->kind, response->body, response->len, &made, &why) < 0) {
        answer(c, NULL, &why);
    } else {
        store_wrote(c->provisioning->stores[c->right->kind], made); // the next call finds it
        settle(c, &made->meta, false);
        object_unref(made);
    }
}

static void on_written(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct pending_change *c = ctx;
    (void)response;
    c->inquiry = NULL;
    answer(c, err->code ? NULL : "null", err);
}

static void write(struct pending_change *c)
{
    const struct kube_request create = {
        .verb = VERB_CREATE, .kind = c->right->kind, .ns = c->ns, .name = c->name, .body = c->manifest};
    const struct kube_request restart = {
        .verb = c->how, .kind = KIND_WORKERGROUP, .ns = c->ns, .name = c->name, .body = c->patch};
    const struct kube_request delete = {
        .verb = VERB_DELETE, .kind = c->right->kind, .ns = c->ns, .name = c->name, .grace_s = -1};
    const struct kube_request *r = c->manifest ? &create : c->patch ? &restart : &delete;
    c->inquiry = inquiry_send(c->provisioning->client, r, WRITE_TIMEOUT_MS, c->manifest ? on_created : on_written, c);
}

// Ask whether the client may do it

static void on_reviewed(void *ctx, const struct kube_response *response, const struct err *err)
{
    struct pending_change *c = ctx;
    struct err why = *err;
    c->inquiry = NULL;
    if (why.code)
        err_set(&why, ERR_UNAVAILABLE, "the operator cannot ask the API server now whether you may %s: %.400s",
                c->right->what, err->msg);
    else
        review_access(response->body, response->len, c->user, c->right, c->ns, c->name, &why);
    if (why.code)
        answer(c, NULL, &why);
    else
        write(c);
}

static void ask(struct pending_change *c, const struct client_user *who)
{
    struct arena a = ARENA_INIT;
    const struct kube_request r = {
        .verb = VERB_CREATE, .kind = KIND_SUBJECT_ACCESS_REVIEW, .body = review_of(who, c->right, c->ns, c->name, &a)};
    c->inquiry = inquiry_send(c->provisioning->client, &r, REVIEW_TIMEOUT_MS, on_reviewed, c);
    arena_done(&a);
}

static struct pending_change *pending_change_new(struct provisioning *d, const struct provision *p,
                                                 const struct right *right, const char *name, provisioner_done_fn done,
                                                 void *done_ctx)
{
    struct pending_change *c = xcalloc(1, sizeof *c);
    *c = (struct pending_change){.provisioning = d,
                                 .right = right,
                                 .ns = xstrdup(p->ns),
                                 .name = xstrdup(name),
                                 .user = xstrdup(p->who.name),
                                 .done = done,
                                 .done_ctx = done_ctx};
    list_append(&d->changes, &c->link);
    return c;
}

// The functions that the gateway calls

static void create(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct provisioning *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct draft draft;
    int r = draft_read(p->args, p->ns, p->who.name, loop_wall_ms(d->loop), &a, &draft, &err);
    if (r == 0)
        r = draft_check_session(&draft, p->lifetime, &err);
    if (r < 0) {
        done(done_ctx, NULL, 0, &err);
    } else {
        struct pending_change *c = pending_change_new(d, p, &rights[draft.kind][0], draft.name, done, done_ctx);
        c->bound = !draft.detached;
        c->lifetime = c->bound ? p->lifetime : NULL;
        c->hash = xstrdup(draft.hash);
        c->manifest = xstrdup(draft.manifest);
        ask(c, &p->who);
    }
    arena_done(&a);
}

static int check_renewal(const struct object *there, const struct provision *p, const char *uid, struct err *err)
{
    const struct meta *m = there ? &there->meta : NULL;
    const struct renewed renewed = {.uid = m ? m->uid : NULL,
                                    .bound = m && labels_get(&m->annotations, ANNOTATION_SESSION_RENEWED),
                                    .deleting = m && m->deleted_ms,
                                    .late = true};
    int r = draft_check_renewal(&renewed, uid, p->lifetime, err);
    return r == 0 && !str_eq(labels_get(&m->annotations, ANNOTATION_CREATED_BY), p->who.name)
               ? err_set(err, ERR_FORBIDDEN, "another user created it")
               : r;
}

static void renew(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct provisioning *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    enum kind kind;
    const char *name, *uid;
    if (draft_read_renew(p->args, &a, &kind, &name, &uid, &err) == 0) {
        const struct object *there = store_get(d->stores[kind], p->ns, name);
        if (!there && !store_is_complete(d->stores[kind])) // a client that hears NOT_FOUND forgets the object
            err_set(&err, ERR_UNAVAILABLE, "this replica is starting and has not read all %s yet",
                    kind_info(kind)->plural);
        else if (check_renewal(there, p, uid, &err) < 0)
            err_wrap(&err, "%s %s/%.100s cannot be renewed", kind_info(kind)->kind, p->ns, name);
        else
            session_objects_add(d->objects, p->lifetime, kind, &there->meta, true);
    }
    done(done_ctx, err.code ? NULL : "null", err.code ? 0 : strlen("null"), &err);
    arena_done(&a);
}

static void delete (void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    enum kind kind;
    const char *name;
    if (draft_read_name(p->args, "group.delete", &a, &kind, &name, &err) < 0)
        done(done_ctx, NULL, 0, &err);
    else
        ask(pending_change_new(ctx, p, &rights[kind][1], name, done, done_ctx), &p->who);
    arena_done(&a);
}

// A user who changes the code of a group becomes its author. `add` also replaces.
static const char *write_change(const struct object *group, const char *user, const char *worker, struct arena *a)
{
    bool made = labels_get(&group->meta.annotations, ANNOTATION_CREATED_BY) != NULL;
    const char *author = made ? json_print(a,
                                           ",{'op':'replace','path':'/metadata/annotations/cadre.dev~1created-by',"
                                           "'value':%s}",
                                           user)
                              : "";
    return json_print(a, "[{'op':'add','path':'/spec/worker','value':%-s}%-s]", worker, author);
}

// A change in spec.worker makes the leader start the processes again in their pods.
static void restart(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct provisioning *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const char *name, *worker, *manifest;
    const struct object *group = NULL;
    char now[RFC3339_SIZE];
    if (draft_read_restart(p->args, &a, &name, &worker, &manifest, &err) == 0)
        group = store_get(d->stores[KIND_WORKERGROUP], p->ns, name);
    if (!err.code && !group)
        err_set(&err, ERR_NOT_FOUND, "there is no WorkerGroup %s/%.100s", p->ns, name);
    else if (!err.code && !workergroup_has_agent(workergroup_of(group)))
        err_set(&err, ERR_INVALID, "WorkerGroup %s/%.100s has the runtime Plain, so no agent that could restart it",
                p->ns, name);
    if (err.code) {
        done(done_ctx, NULL, 0, &err);
    } else {
        struct pending_change *c = pending_change_new(d, p, &restarting, name, done, done_ctx);
        c->how = worker ? VERB_PATCH_JSON : VERB_PATCH_MERGE;
        c->patch = xstrdup(worker ? write_change(group, c->user, worker, &a)
                                  : json_print(&a, "{'spec':{'worker':{'restartedAt':%s}}}",
                                               rfc3339_format_micro(loop_wall_ms(d->loop), now)));
        ask(c, &p->who);
    }
    arena_done(&a);
}

static void put_node(const char *ranges, const char *node, int32_t n, const char **nodes)
{
    int32_t first, last;
    for (const char *text = ranges; ranges_next(&text, &first, &last);)
        for (int32_t k = first; k <= last && k < n; k++)
            nodes[k] = node;
}

// The status has only the first nodes. Their pods name the others.
static void read_pods(const struct store *pods, const struct meta *m, struct arena *a, int32_t n, const char **nodes)
{
    const struct object *const *owned;
    size_t n_owned = store_by_owner(pods, m, a, &owned);
    for (size_t i = 0; i < n_owned; i++) {
        const struct pod *p = pod_of(owned[i]);
        if (p->node && !pod_terminal(p) && !p->obj.meta.deleted_ms)
            put_node(labels_get(&p->obj.meta.annotations, ANNOTATION_BUNDLES), p->node, n, nodes);
    }
}

// Reads the places from the status, which has ranges of bundles by node.
static void read_places(const struct placementgroup *p, const struct store *pods, struct arena *a,
                        struct bundle_places *ret)
{
    const struct condition *ready = condition_find(p->status.conditions, p->status.n_conditions, COND_READY);
    const int32_t n = (int32_t)MIN(bundles_count(&p->spec), (int64_t)BUNDLES_MAX); // the status may not have them yet
    const char **nodes = arena_array(a, (size_t)n, sizeof *nodes);
    if ((size_t)MAX(p->status.nodes, 0) > p->status.n_placements)
        read_pods(pods, &p->obj.meta, a, n, nodes);
    for (size_t i = 0; i < p->status.n_placements; i++)
        put_node(p->status.placements[i].ranges, p->status.placements[i].node, n, nodes);
    *ret = (struct bundle_places){.n = n,
                                  .nodes = nodes,
                                  .ready = ready && ready->status == CONDITION_TRUE,
                                  .message = ready ? ready->message : NULL};
}

static void bundles(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    const struct provisioning *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct bundle_places places;
    const char *name;
    int r = draft_read_bundles(p->args, &a, &name, &err);
    const struct object *o = r == 0 ? store_get(d->stores[KIND_PLACEMENTGROUP], p->ns, name) : NULL;
    if (r == 0 && !o)
        err_set(&err, ERR_NOT_FOUND, "there is no PlacementGroup %s/%.100s", p->ns, name);
    if (o)
        read_places(placementgroup_of(o), d->stores[KIND_POD], &a, &places);
    const char *json = o ? bundle_places_write(&places, &a) : NULL;
    done(done_ctx, json, json ? strlen(json) : 0, &err);
    arena_done(&a);
}

struct sum {
    struct arena *arena;
    size_t nodes;
    struct resources all;
};

static void add_node(void *ctx, const struct object *o)
{
    struct sum *s = ctx;
    const struct node *n = node_of(o);
    if (!n->ready || n->unschedulable)
        return;
    s->nodes++;
    resources_add(&s->all, &n->allocatable, s->arena);
}

static void capacity(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    const struct provisioning *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct sum sum = {.arena = &a};
    (void)p;
    store_each(d->stores[KIND_NODE], add_node, &sum);
    const char *json = capacity_write(sum.nodes, &sum.all, &a);
    done(done_ctx, json, strlen(json), &err);
    arena_done(&a);
}

static void ended(void *ctx, const void *lifetime, bool wanted)
{
    struct provisioning *d = ctx;
    LIST_FOREACH(l, &d->changes) {
        struct pending_change *c = CONTAINER_OF(l, struct pending_change, link);
        if (c->lifetime != lifetime)
            continue;
        c->lifetime = NULL;
        c->unwanted = !wanted;
    }
    session_objects_ended(d->objects, lifetime, wanted);
}

struct provisioning *provision_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                                   int64_t renew_ms)
{
    struct provisioning *d = xcalloc(1, sizeof *d);
    *d = (struct provisioning){.loop = loop, .client = client, .stores = stores};
    list_init(&d->changes);
    d->objects = session_objects_new(loop, client, renew_ms);
    return d;
}

void provision_free(struct provisioning *d)
{
    if (!d)
        return;
    LIST_FOREACH(l, &d->changes)
        pending_change_free(CONTAINER_OF(l, struct pending_change, link));
    session_objects_free(d->objects);
    free(d);
}

struct provisioner provision_provisioner(struct provisioning *d)
{
    return (struct provisioner){.ctx = d,
                                .create = create,
                                .renew = renew,
                                .remove = delete,
                                .restart = restart,
                                .bundles = bundles,
                                .capacity = capacity,
                                .ended = ended};
}
