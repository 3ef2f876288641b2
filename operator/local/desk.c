// SPDX-License-Identifier: Apache-2.0
#include "operator/local/desk.h"

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/draft.h"
#include "operator/api/object_decode.h"
#include "operator/local/claim.h"
#include "operator/reconcile/bundles.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct used_bundle {        // of a replica
    const struct entry *on; // the PlacementGroup; NULL = it is gone
    int32_t bundle;
};

struct used_bundles {
    struct used_bundle *items;
    int32_t n;
};

// A group, or a PlacementGroup.
struct entry {
    struct list link;
    struct desk *desk;
    struct local_group *group;      // NULL = it is a PlacementGroup:
    const struct object *placement; // referenced
    char *ns, *name, *uid;
    struct used_bundles used; // of a group on bundles: one of each replica
    const void *lifetime;     // NULL = detached, or the session is away
    bool bound;               // it goes with a session
    bool placed;              // it has its nodes, and was started
    bool gone;                // nobody finds it any more; it lives until its processes, or those on it, have ended
    char *hash;               // of the request that made it
    char *waits;              // of a PlacementGroup: for what
    struct loop_timer *abandoned;
    struct arena arena; // of the assignment
    struct nodes_assignment assignment;
};

struct desk {
    struct loop *loop;
    struct nodes *nodes;
    const char *map;
    int gpus;
    struct local_run run;
    bool stopping;                   // nothing new begins
    struct list entries;             // by age: the first to come is assigned first
    unsigned long long n_placements; // so far
};

static bool uses(const struct entry *e, const struct entry *placement)
{
    for (int32_t i = 0; i < e->used.n; i++)
        if (e->used.items[i].on == placement)
            return true;
    return false;
}

static void entry_free(struct entry *e)
{
    list_remove(&e->link);
    LIST_FOREACH(l, &e->desk->entries) {
        struct entry *user = CONTAINER_OF(l, struct entry, link);
        for (int32_t i = 0; i < user->used.n; i++)
            if (user->used.items[i].on == e)
                user->used.items[i].on = NULL;
    }
    nodes_leave(e->desk->nodes, e->uid);
    if (e->gone && e->group) // else the whole gateway is
        gateway_group_gone(e->desk->run.gateway, e->uid);
    loop_timer_free(e->abandoned);
    local_group_free(e->group);
    object_unref(e->placement);
    arena_done(&e->arena);
    free(e->used.items);
    free(e->ns);
    free(e->name);
    free(e->uid);
    free(e->hash);
    free(e->waits);
    free(e);
}

// What has a place, and what waits for one

static int place_placement(struct entry *e, struct err *err)
{
    struct nodes_gang gang;
    int r = claim_of_placementgroup(placementgroup_of(e->placement), e->uid, &e->arena, &gang, err);
    if (r == 0)
        r = nodes_assign(e->desk->nodes, &gang, &e->arena, &e->assignment, err);
    e->placed = r == 0;
    return r;
}

static int sit_on_bundles(struct entry *e, struct err *err)
{
    const struct used_bundles *s = &e->used;
    const char **nodes = arena_array(&e->arena, (size_t)s->n, sizeof *nodes);
    const char **gpus = arena_array(&e->arena, (size_t)s->n, sizeof *gpus);
    for (int32_t i = 0; i < s->n; i++) {
        const struct entry *on = s->items[i].on;
        if (!on)
            return err_set(err, ERR_UNAVAILABLE, "its PlacementGroup was deleted");
        if (!on->placed)
            return err_set(err, ERR_UNAVAILABLE, "PlacementGroup %s is not ready: %s", on->name, on->waits);
        nodes[i] = arena_strdup(&e->arena, on->assignment.nodes[s->items[i].bundle]);
        gpus[i] = arena_strdup(&e->arena, on->assignment.gpus[s->items[i].bundle]);
    }
    e->assignment = (struct nodes_assignment){nodes, gpus};
    return 0;
}

static int find_place(struct entry *e, const struct workergroup *g, struct err *err)
{
    struct nodes_gang gang;
    if (e->used.n)
        return sit_on_bundles(e, err);
    int r = claim_of_group(g, e->uid, &e->arena, &gang, err);
    return r < 0 ? r : nodes_assign(e->desk->nodes, &gang, &e->arena, &e->assignment, err);
}

static int place_group(struct entry *e, struct err *err)
{
    const struct workergroup *g = local_group_spec(e->group);
    const struct worker_spec *w = &g->spec.worker;
    struct claimed_gpus claimed;
    int r = find_place(e, g, err);
    if (r < 0)
        return r;
    e->placed = true;
    r = claim_gpus(g, e->assignment.gpus, &e->arena, &claimed, err);
    const struct local_gpus gpus = {.list = e->desk->gpus ? claimed.list : NULL,
                                    .of_processes = claimed.of_processes,
                                    .own = w->gpu_visibility == GPU_VISIBILITY_OWN ||
                                           (w->gpu_visibility == GPU_VISIBILITY_DEFAULT && w->module)};
    if (r == 0)
        r = local_group_start(e->group, &gpus, err);
    if (r < 0)
        nodes_leave(e->desk->nodes, e->uid);
    return r;
}

static int place(struct entry *e, struct err *err)
{
    return e->group ? place_group(e, err) : place_placement(e, err);
}

static void wait_for(struct entry *e, const char *why)
{
    if (e->group) {
        local_group_waits(e->group, why);
        return;
    }
    free(e->waits);
    e->waits = xstrdup(why);
}

static int place_or_wait(struct entry *e, struct err *err)
{
    int r = place(e, err);
    if (r != ERR_UNAVAILABLE || e->placed)
        return r;
    wait_for(e, err->msg);
    *err = (struct err)ERR_INIT;
    return 0;
}

static void place_waiting(struct desk *d)
{
    LIST_FOREACH(l, &d->entries) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        struct err err = ERR_INIT;
        if (!e->placed && !e->gone && !d->stopping && place(e, &err) < 0)
            wait_for(e, err.msg);
    }
}

// Its processes have ended: nobody needs its nodes any more, whether it was deleted or not.
static void on_ended(void *ctx, struct local_group *g)
{
    struct desk *d = ctx;
    nodes_leave(d->nodes, local_group_uid(g));
    place_waiting(d);
}

// Processes of it, or on it, run.
static bool runs(const struct entry *e)
{
    if (e->group)
        return local_group_runs(e->group);
    LIST_FOREACH(l, &e->desk->entries) {
        const struct entry *user = CONTAINER_OF(l, struct entry, link);
        if (uses(user, e) && local_group_runs(user->group))
            return true;
    }
    return false;
}

static void stop_users(const struct entry *placement)
{
    _cleanup_(free_p) char *why = xasprintf("its PlacementGroup %s was deleted", placement->name);
    LIST_FOREACH(l, &placement->desk->entries) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (uses(e, placement) && !local_group_stopped(e->group))
            local_group_stop(e->group, why);
    }
}

static void delete_entry(struct entry *e)
{
    struct desk *d = e->desk;
    e->gone = true;
    e->lifetime = NULL;
    loop_timer_disarm(e->abandoned);
    if (!e->group)
        stop_users(e);
    else if (!local_group_stopped(e->group))
        local_group_stop(e->group, "it was deleted");
    if (runs(e))
        return;
    entry_free(e);
    place_waiting(d);
}

static void on_abandoned(void *ctx)
{
    delete_entry(ctx);
}

static struct entry *find(const struct desk *d, enum kind kind, const char *ns, const char *name)
{
    LIST_FOREACH(l, &d->entries) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (!e->gone && (e->group != NULL) == (kind == KIND_WORKERGROUP) && str_eq(e->ns, ns) && str_eq(e->name, name))
            return e;
    }
    return NULL;
}

// What the gateway calls

static void answer(const struct entry *e, provisioner_done_fn done, void *done_ctx)
{
    cJSON *group = cJSON_CreateObject();
    cJSON_AddStringToObject(group, "namespace", e->ns);
    cJSON_AddStringToObject(group, "name", e->name);
    cJSON_AddStringToObject(group, "uid", e->uid);
    cJSON_AddStringToObject(group, "lifetime", e->bound ? "Session" : "Detached");
    char *text = cJSON_PrintUnformatted(group);
    if (!text)
        abort();
    done(done_ctx, text, strlen(text), &(struct err){0});
    cJSON_free(text);
    cJSON_Delete(group);
}

// The same request again, of a program that has come back or did not hear the answer.
static int take_over(struct entry *e, const struct provision *p, const struct draft *draft, struct err *err)
{
    if (!str_eq(e->hash, draft->hash) || e->bound == draft->detached)
        return err_set(err, ERR_EXISTS,
                       "a %s %s/%s exists in this run already, and this request did not create it; delete it or choose "
                       "another name",
                       kind_info(draft->kind)->kind, p->ns, draft->name);
    e->lifetime = e->bound ? p->lifetime : NULL;
    loop_timer_disarm(e->abandoned);
    return 0;
}

static struct entry *entry_new(struct desk *d, const struct provision *p, const struct draft *draft)
{
    struct entry *e = xcalloc(1, sizeof *e);
    *e = (struct entry){.desk = d,
                        .ns = xstrdup(p->ns),
                        .name = xstrdup(draft->name),
                        .lifetime = draft->detached ? NULL : p->lifetime,
                        .bound = !draft->detached,
                        .hash = xstrdup(draft->hash),
                        .arena = ARENA_INIT};
    e->abandoned = loop_timer_new(d->loop, on_abandoned, e);
    list_append(&d->entries, &e->link);
    return e;
}

static int make_placement(struct desk *d, const struct provision *p, const struct draft *draft, struct entry **ret,
                          struct err *err)
{
    const struct object *o;
    int r = object_decode(KIND_PLACEMENTGROUP, draft->manifest, strlen(draft->manifest), &o, err);
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    *ret = entry_new(d, p, draft);
    (*ret)->placement = o;
    (*ret)->uid = xasprintf("placement-%llu", (unsigned long long)d->n_placements++);
    return 0;
}

// The bundles of its replicas.
static int take_bundles(const struct desk *d, const char *ns, const struct workergroup *g, struct used_bundles *used,
                        struct err *err)
{
    const size_t n = g->spec.n_placement_groups;
    struct arena a = ARENA_INIT;
    const struct placementgroup **named = arena_array(&a, n, sizeof *named);
    const struct entry **entries = arena_array(&a, n, sizeof *entries);
    struct claimed_bundle *claimed;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *name = g->spec.placement_groups[i].name;
        entries[i] = find(d, KIND_PLACEMENTGROUP, ns, name);
        if (entries[i])
            named[i] = placementgroup_of(entries[i]->placement);
        else
            r = err_set(err, ERR_NOT_FOUND, "there is no PlacementGroup %s/%s in this run", ns, name);
    }
    if (r == 0 && n)
        r = claim_bundles(g, named, &a, &claimed, err);
    if (r == 0 && n) {
        *used = (struct used_bundles){xcalloc((size_t)g->spec.replicas, sizeof *used->items), g->spec.replicas};
        for (int32_t i = 0; i < used->n; i++)
            used->items[i] = (struct used_bundle){entries[claimed[i].of], claimed[i].bundle};
    }
    arena_done(&a);
    return r;
}

static int make_group(struct desk *d, const struct provision *p, const struct draft *draft, struct entry **ret,
                      struct err *err)
{
    struct manifest manifest;
    struct used_bundles used = {NULL, 0};
    int r = manifest_parse(draft->manifest, d->map, &manifest, err);
    if (r == 0 && (r = take_bundles(d, p->ns, manifest.group, &used, err)) < 0)
        manifest_done(&manifest);
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    const struct local_job job = {p->ns, draft->name, manifest.processes, manifest.command, manifest};
    *ret = entry_new(d, p, draft);
    (*ret)->group = local_group_new(&d->run, &job);
    (*ret)->uid = xstrdup(local_group_uid((*ret)->group));
    (*ret)->used = used;
    return 0;
}

static int make(struct desk *d, const struct provision *p, const struct draft *draft, struct entry **ret,
                struct err *err)
{
    size_t n = 0;
    LIST_FOREACH(l, &d->entries)
        n++;
    if (n >= DESK_ENTRIES_MAX)
        return err_set(err, ERR_LIMIT, "this run has %zu groups and PlacementGroups, which is the limit: delete some",
                       n);
    return (draft->kind == KIND_WORKERGROUP ? make_group : make_placement)(d, p, draft, ret, err);
}

// What has no place now waits for one. What can never have one is refused, and so is what cannot be started.
static int begin(struct entry *e, struct err *err)
{
    struct err why = ERR_INIT;
    int r = place_or_wait(e, &why);
    if (r < 0) {
        err_set(err, r, "%s: %s", e->name, why.msg);
        delete_entry(e);
    }
    return r;
}

static void create(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct desk *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct draft draft;
    int r = draft_read(p->args, p->ns, p->who.name, loop_wall_ms(d->loop), &a, &draft, &err);
    if (r == 0 && !draft.detached && !p->lifetime)
        r = err_set(&err, ERR_INVALID,
                    "a single request has no session that could own the group: set \"lifetime\" to \"Detached\", or "
                    "open a websocket");
    if (r == 0)
        r = manifest_check_name(p->ns, draft.name, &err);
    if (r == 0 && d->stopping)
        r = err_set(&err, ERR_UNAVAILABLE, "%s: this run is ending and starts no more groups", draft.name);
    struct entry *e = r == 0 ? find(d, draft.kind, p->ns, draft.name) : NULL;
    if (e) {
        r = take_over(e, p, &draft, &err);
    } else if (r == 0) {
        r = make(d, p, &draft, &e, &err);
        if (r == 0)
            r = begin(e, &err);
    }
    if (r < 0)
        done(done_ctx, NULL, 0, &err);
    else
        answer(e, done, done_ctx);
    arena_done(&a);
}

// What a request for one object is about; NULL: err says why not.
static struct entry *named(const struct desk *d, const struct provision *p, const char *method, struct arena *a,
                           struct err *err)
{
    enum kind kind;
    const char *name;
    if (draft_read_name(p->args, method, a, &kind, &name, err) < 0)
        return NULL;
    struct entry *e = find(d, kind, p->ns, name);
    if (!e)
        err_set(err, ERR_NOT_FOUND, "there is no %s %s/%.100s in this run", kind_info(kind)->kind, p->ns, name);
    return e;
}

static void delete (void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct entry *e = named(ctx, p, "group.delete", &a, &err);
    if (e)
        delete_entry(e);
    done(done_ctx, e ? "null" : NULL, e ? 4 : 0, &err);
    arena_done(&a);
}

static int change(const struct desk *d, const struct entry *e, const char *text, struct err *err)
{
    struct manifest manifest;
    int r = manifest_parse(text, d->map, &manifest, err);
    if (r < 0)
        return err_wrap(err, "%s", e->name);
    const struct local_job job = {.processes = manifest.processes, .command = manifest.command, .manifest = manifest};
    r = local_group_change(e->group, &job, err);
    if (r < 0)
        manifest_done(&manifest);
    return r;
}

static void start_again(const struct desk *d, struct entry *e, struct err *err)
{
    if (!e->placed || local_group_restart(e->group))
        return;
    nodes_leave(d->nodes, e->uid);
    e->placed = false; // it has ended, so others may have its place now
    (void)place_or_wait(e, err);
}

static void restart(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    const struct desk *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const char *name, *worker, *manifest;
    struct entry *e = NULL;
    if (draft_read_restart(p->args, &a, &name, &worker, &manifest, &err) == 0 &&
        !(e = find(d, KIND_WORKERGROUP, p->ns, name)))
        err_set(&err, ERR_NOT_FOUND, "there is no WorkerGroup %s/%.100s in this run", p->ns, name);
    else if (e && (d->stopping || local_group_stopped(e->group)))
        err_set(&err, ERR_UNAVAILABLE, "%s is ending, and starts no more processes", e->name);
    else if (e && (!worker || change(d, e, manifest, &err) == 0))
        start_again(d, e, &err);
    done(done_ctx, err.code ? NULL : "null", err.code ? 0 : 4, &err);
    arena_done(&a);
}

static void bundles(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    const struct entry *e = named(ctx, p, "group.bundles", &a, &err);
    if (e && e->group)
        err_set(&err, ERR_INVALID, "group.bundles needs {\"placementGroup\": the name of a PlacementGroup}");
    if (err.code) {
        done(done_ctx, NULL, 0, &err);
    } else {
        const struct bundle_places places = {.n = (int32_t)bundles_count(&placementgroup_of(e->placement)->spec),
                                             .nodes = e->placed ? e->assignment.nodes : NULL,
                                             .ready = e->placed,
                                             .message = e->waits};
        const char *json = bundle_places_write(&places, &a);
        done(done_ctx, json, strlen(json), &err);
    }
    arena_done(&a);
}

static void ended(void *ctx, const void *lifetime, bool wanted)
{
    const struct desk *d = ctx;
    LIST_FOREACH(l, &d->entries) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (e->lifetime != lifetime)
            continue;
        e->lifetime = NULL;
        loop_timer_arm(e->abandoned, wanted ? DESK_ABANDONED_MS : 0);
    }
}

// The desk

struct desk *desk_new(struct loop *loop, int nodes, int gpus, int cpus, const char *map)
{
    struct desk *d = xcalloc(1, sizeof *d);
    *d = (struct desk){.loop = loop, .nodes = nodes_new(nodes, gpus, cpus), .map = map, .gpus = gpus};
    list_init(&d->entries);
    return d;
}

void desk_run(struct desk *d, const struct local_run *run)
{
    d->run = *run;
    d->run.ended = on_ended;
    d->run.ctx = d;
}

void desk_free(struct desk *d)
{
    if (!d)
        return;
    LIST_FOREACH(l, &d->entries)
        entry_free(CONTAINER_OF(l, struct entry, link));
    nodes_free(d->nodes);
    free(d);
}

struct provisioner desk_provisioner(struct desk *d)
{
    return (struct provisioner){
        .ctx = d, .create = create, .remove = delete, .restart = restart, .bundles = bundles, .ended = ended};
}

static const struct entry *by_uid(const struct desk *d, const char *uid)
{
    LIST_FOREACH(l, &d->entries) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (str_eq(e->uid, uid))
            return e;
    }
    return NULL;
}

struct local_group *desk_find(const struct desk *d, const char *uid)
{
    const struct entry *e = by_uid(d, uid);
    return e ? e->group : NULL;
}

const char *desk_node(const struct desk *d, const char *uid, uint32_t rank)
{
    const struct entry *e = by_uid(d, uid);
    if (!e || !e->group || !e->placed)
        return NULL;
    const struct workergroup *g = local_group_spec(e->group);
    const uint32_t replica = rank / (uint32_t)g->spec.workers_per_replica;
    return replica < (uint32_t)g->spec.replicas ? e->assignment.nodes[replica] : NULL; // a worker says its rank itself
}

void desk_reap(struct desk *d)
{
    bool left = false;
    LIST_FOREACH(l, &d->entries) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (e->group)
            local_group_reap(e->group);
    }
    for (int groups = 1; groups >= 0; groups--) // before what they are on
        LIST_FOREACH(l, &d->entries) {
            struct entry *e = CONTAINER_OF(l, struct entry, link);
            if (e->gone && (e->group != NULL) == groups && !runs(e)) {
                left = left || !groups;
                entry_free(e);
            }
        }
    if (left)
        place_waiting(d);
}

void desk_stop(struct desk *d, bool again)
{
    d->stopping = true;
    LIST_FOREACH(l, &d->entries) {
        struct local_group *g = CONTAINER_OF(l, struct entry, link)->group;
        if (g && (again || !local_group_stopped(g))) // one that is told twice kills its processes
            local_group_stop(g, "its run on this machine is ending");
    }
}

bool desk_idle(const struct desk *d)
{
    LIST_FOREACH(l, &d->entries)
        if (runs(CONTAINER_OF(l, struct entry, link)))
            return false;
    return true;
}
