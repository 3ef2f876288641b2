// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_provision.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/object_decode.h"
#include "operator/local/local_object.h"
#include "operator/reconcile/bundles.h"

#include <stdlib.h>
#include <string.h>

struct local_provision {
    struct local_objects objects;
    const char *map;
    struct local_run run;
    unsigned long long n_placementgroups; // PlacementGroups created so far
};

// The processes have ended. Nobody needs their nodes any more, whether the group was deleted or not.
static void on_ended(void *ctx, struct local_group *g)
{
    struct local_provision *d = ctx;
    nodes_leave(d->objects.nodes, g->uid);
    local_objects_place_waiting(&d->objects);
}

// The functions that the gateway calls

// Returns NULL, with the reason in `err`, if there is none.
static struct local_object *find(const struct local_provision *d, enum kind kind, const char *ns, const char *name,
                                 struct err *err)
{
    struct local_object *o = local_objects_find(&d->objects, kind, ns, name);
    if (!o)
        err_set(err, ERR_NOT_FOUND, "there is no %s %s/%.100s in this run", kind_info(kind)->kind, ns, name);
    return o;
}

// Ends a request: with `json`, or with the error.
static void answer(provisioner_done_fn done, void *done_ctx, const char *json, const struct err *err)
{
    done(done_ctx, err->code ? NULL : json, err->code ? 0 : strlen(json), err);
}

// From now on, the object ends with that session.
static void own(struct local_object *o, const void *lifetime)
{
    o->lifetime = lifetime;
    loop_timer_disarm(o->abandoned);
}

// The same request came again: the program has come back, or did not get the answer.
static int take_over(struct local_object *o, const struct provision *p, const struct draft *draft, struct err *err)
{
    if (!str_eq(o->hash, draft->hash) || o->bound == draft->detached)
        return err_set(err, ERR_EXISTS,
                       "a %s %s/%s exists in this run already, and this request did not create it; delete it or choose "
                       "another name",
                       kind_info(draft->kind)->kind, p->ns, draft->name);
    own(o, o->bound ? p->lifetime : NULL);
    return 0;
}

static int make_placementgroup(struct local_provision *d, const struct provision *p, const struct draft *draft,
                               struct local_object **ret, struct err *err)
{
    const struct object *placementgroup;
    int r = object_decode(KIND_PLACEMENTGROUP, draft->manifest, strlen(draft->manifest), &placementgroup, err);
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    *ret = local_object_new(&d->objects, p, draft);
    (*ret)->placementgroup = placementgroup;
    (*ret)->uid = xasprintf("placement-%llu", (unsigned long long)d->n_placementgroups++);
    return 0;
}

static int make_group(struct local_provision *d, const struct provision *p, const struct draft *draft,
                      struct local_object **ret, struct err *err)
{
    struct manifest manifest;
    struct used_bundles used = {NULL, 0};
    int r = manifest_parse(draft->manifest, d->map, &manifest, err);
    if (r == 0 && (r = local_objects_take_bundles(&d->objects, p->ns, manifest.group, &used, err)) < 0)
        manifest_done(&manifest);
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    *ret = local_object_new(&d->objects, p, draft);
    (*ret)->group = local_group_new(&d->run, p->ns, draft->name, &manifest);
    (*ret)->uid = xstrdup((*ret)->group->uid);
    (*ret)->used = used;
    return 0;
}

static int make(struct local_provision *d, const struct provision *p, const struct draft *draft,
                struct local_object **ret, struct err *err)
{
    size_t n = 0;
    LIST_FOREACH(l, &d->objects.list)
        n++;
    if (n >= LOCAL_PROVISION_MAX)
        return err_set(err, ERR_LIMIT, "this run has %zu groups and PlacementGroups, which is the limit: delete some",
                       n);
    return (draft->kind == KIND_WORKERGROUP ? make_group : make_placementgroup)(d, p, draft, ret, err);
}

static void create(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct local_provision *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct draft draft;
    int r = draft_read(p->args, p->ns, p->who.name, loop_wall_ms(d->objects.loop), &a, &draft, &err);
    if (r == 0)
        r = draft_check_session(&draft, p->lifetime, &err);
    if (r == 0)
        r = manifest_check_name(p->ns, draft.name, &err);
    if (r == 0 && d->objects.stopping)
        r = err_set(&err, ERR_UNAVAILABLE, "%s: this run is ending and starts no more groups", draft.name);
    struct local_object *o = r == 0 ? local_objects_find(&d->objects, draft.kind, p->ns, draft.name) : NULL;
    if (o) {
        r = take_over(o, p, &draft, &err);
    } else if (r == 0) {
        r = make(d, p, &draft, &o, &err);
        if (r == 0)
            r = local_object_begin(o, &err);
    }
    answer(done, done_ctx, r == 0 ? draft_answer(o->ns, o->name, o->uid, !o->bound, &a) : NULL, &err);
    arena_done(&a);
}

static void renew(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    enum kind kind;
    const char *name, *uid;
    int r = draft_read_renew(p->args, &a, &kind, &name, &uid, &err);
    struct local_provision *d = ctx;
    struct local_object *o = r == 0 ? local_objects_find(&d->objects, kind, p->ns, name) : NULL;
    const struct renewed renewed = {.uid = o ? o->uid : NULL, .bound = o && o->bound};
    if (r == 0 && draft_check_renewal(&renewed, uid, p->lifetime, &err) < 0)
        err_wrap(&err, "%s %s/%.100s cannot be renewed", kind_info(kind)->kind, p->ns, name);
    else if (r == 0)
        own(o, p->lifetime);
    answer(done, done_ctx, "null", &err);
    arena_done(&a);
}

static void delete (void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    enum kind kind;
    const char *name;
    int r = draft_read_name(p->args, "group.delete", &a, &kind, &name, &err);
    struct local_object *o = r == 0 ? find(ctx, kind, p->ns, name, &err) : NULL;
    if (o)
        local_object_delete(o);
    answer(done, done_ctx, "null", &err);
    arena_done(&a);
}

static int change(const struct local_provision *d, const struct local_object *o, const char *text, struct err *err)
{
    struct manifest manifest;
    int r = manifest_parse(text, d->map, &manifest, err);
    if (r < 0)
        return err_wrap(err, "%s", o->name);
    r = local_group_change(o->group, &manifest, err);
    if (r < 0)
        manifest_done(&manifest);
    return r;
}

static void restart(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    const struct local_provision *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const char *name, *worker, *manifest;
    int r = draft_read_restart(p->args, &a, &name, &worker, &manifest, &err);
    struct local_object *o = r == 0 ? find(d, KIND_WORKERGROUP, p->ns, name, &err) : NULL;
    if (o && (d->objects.stopping || o->group->asked))
        err_set(&err, ERR_UNAVAILABLE, "%s is ending, and starts no more processes", o->name);
    else if (o && (!worker || change(d, o, manifest, &err) == 0))
        local_object_start_again(o, &err);
    answer(done, done_ctx, "null", &err);
    arena_done(&a);
}

static void bundles(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const char *name, *json = NULL;
    int r = draft_read_bundles(p->args, &a, &name, &err);
    const struct local_object *o = r == 0 ? find(ctx, KIND_PLACEMENTGROUP, p->ns, name, &err) : NULL;
    if (o)
        json = bundle_places_write(
            &(struct bundle_places){.n = (int32_t)bundles_count(&placementgroup_of(o->placementgroup)->spec),
                                    .nodes = o->placed ? o->assignment.nodes : NULL,
                                    .ready = o->placed,
                                    .message = o->waits},
            &a);
    answer(done, done_ctx, json, &err);
    arena_done(&a);
}

static void capacity(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    const struct local_provision *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    (void)p;
    answer(done, done_ctx, nodes_capacity(d->objects.nodes, &a), &err);
    arena_done(&a);
}

static void ended(void *ctx, const void *lifetime, bool wanted)
{
    const struct local_provision *d = ctx;
    LIST_FOREACH(l, &d->objects.list) {
        struct local_object *o = CONTAINER_OF(l, struct local_object, link);
        if (o->lifetime != lifetime)
            continue;
        o->lifetime = NULL;
        loop_timer_arm(o->abandoned, wanted ? LOCAL_PROVISION_ABANDONED_MS : 0);
    }
}

struct local_provision *local_provision_new(struct loop *loop, int nodes, int gpus, int cpus, const char *map)
{
    struct local_provision *d = xcalloc(1, sizeof *d);
    *d = (struct local_provision){.objects = {.loop = loop, .nodes = nodes_new(nodes, gpus, cpus), .gpus = gpus},
                                  .map = map};
    list_init(&d->objects.list);
    return d;
}

void local_provision_run(struct local_provision *d, const struct local_run *run)
{
    d->run = *run;
    d->objects.gateway = run->gateway;
    d->run.ended = on_ended;
    d->run.ctx = d;
}

void local_provision_free(struct local_provision *d)
{
    if (!d)
        return;
    LIST_FOREACH(l, &d->objects.list)
        local_object_free(CONTAINER_OF(l, struct local_object, link));
    nodes_free(d->objects.nodes);
    free(d);
}

struct provisioner local_provision_provisioner(struct local_provision *d)
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

struct local_group *local_provision_find(const struct local_provision *d, const char *uid)
{
    const struct local_object *o = local_objects_by_uid(&d->objects, uid);
    return o ? o->group : NULL;
}

const char *local_provision_node(const struct local_provision *d, const char *uid, uint32_t rank)
{
    const struct local_object *o = local_objects_by_uid(&d->objects, uid);
    if (!o || !o->group || !o->placed)
        return NULL;
    const struct workergroup *g = o->group->manifest.group;
    const uint32_t replica = rank / (uint32_t)g->spec.workers_per_replica;
    // A worker reports its own rank, which may be wrong.
    return replica < (uint32_t)g->spec.replicas ? o->assignment.nodes[replica] : NULL;
}

void local_provision_reap(struct local_provision *d)
{
    local_objects_reap(&d->objects);
}

void local_provision_stop(struct local_provision *d, bool again)
{
    d->objects.stopping = true;
    LIST_FOREACH(l, &d->objects.list) {
        struct local_group *g = CONTAINER_OF(l, struct local_object, link)->group;
        if (g && (again || !g->asked)) // a group that is told twice kills its processes
            local_group_stop(g, "its run on this machine is ending");
    }
}

bool local_provision_idle(const struct local_provision *d)
{
    LIST_FOREACH(l, &d->objects.list)
        if (local_object_runs(CONTAINER_OF(l, struct local_object, link)))
            return false;
    return true;
}
