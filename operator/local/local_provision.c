// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_provision.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/object_decode.h"
#include "operator/local/entry.h"
#include "operator/reconcile/bundles.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

struct local_provision {
    struct entries entries;
    const char *map;
    struct local_run run;
    unsigned long long n_placements; // PlacementGroups created so far
};

// The processes have ended. Nobody needs their nodes any more, whether the group was deleted or not.
static void on_ended(void *ctx, struct local_group *g)
{
    struct local_provision *d = ctx;
    nodes_leave(d->entries.nodes, g->uid);
    entries_place_waiting(&d->entries);
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

// The same request came again: the program has come back, or did not get the answer.
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

static int make_placement(struct local_provision *d, const struct provision *p, const struct draft *draft,
                          struct entry **ret, struct err *err)
{
    const struct object *o;
    int r = object_decode(KIND_PLACEMENTGROUP, draft->manifest, strlen(draft->manifest), &o, err);
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    *ret = entry_new(&d->entries, p, draft);
    (*ret)->placement = o;
    (*ret)->uid = xasprintf("placement-%llu", (unsigned long long)d->n_placements++);
    return 0;
}

static int make_group(struct local_provision *d, const struct provision *p, const struct draft *draft,
                      struct entry **ret, struct err *err)
{
    struct manifest manifest;
    struct used_bundles used = {NULL, 0};
    int r = manifest_parse(draft->manifest, d->map, &manifest, err);
    if (r == 0 && (r = entries_take_bundles(&d->entries, p->ns, manifest.group, &used, err)) < 0)
        manifest_done(&manifest);
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    *ret = entry_new(&d->entries, p, draft);
    (*ret)->group = local_group_new(&d->run, p->ns, draft->name, &manifest);
    (*ret)->uid = xstrdup((*ret)->group->uid);
    (*ret)->used = used;
    return 0;
}

static int make(struct local_provision *d, const struct provision *p, const struct draft *draft, struct entry **ret,
                struct err *err)
{
    size_t n = 0;
    LIST_FOREACH(l, &d->entries.list)
        n++;
    if (n >= LOCAL_PROVISION_MAX)
        return err_set(err, ERR_LIMIT, "this run has %zu groups and PlacementGroups, which is the limit: delete some",
                       n);
    return (draft->kind == KIND_WORKERGROUP ? make_group : make_placement)(d, p, draft, ret, err);
}

static void create(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct local_provision *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct draft draft;
    int r = draft_read(p->args, p->ns, p->who.name, loop_wall_ms(d->entries.loop), &a, &draft, &err);
    if (r == 0 && !draft.detached && !p->lifetime)
        r = err_set(&err, ERR_INVALID,
                    "a single request has no session that could own the group: set \"lifetime\" to \"Detached\", or "
                    "open a websocket");
    if (r == 0)
        r = manifest_check_name(p->ns, draft.name, &err);
    if (r == 0 && d->entries.stopping)
        r = err_set(&err, ERR_UNAVAILABLE, "%s: this run is ending and starts no more groups", draft.name);
    struct entry *e = r == 0 ? entries_find(&d->entries, draft.kind, p->ns, draft.name) : NULL;
    if (e) {
        r = take_over(e, p, &draft, &err);
    } else if (r == 0) {
        r = make(d, p, &draft, &e, &err);
        if (r == 0)
            r = entry_begin(e, &err);
    }
    if (r < 0)
        done(done_ctx, NULL, 0, &err);
    else
        answer(e, done, done_ctx);
    arena_done(&a);
}

// Returns the object of a request. NULL: `err` says why there is none.
static struct entry *named(const struct local_provision *d, const struct provision *p, const char *method,
                           struct arena *a, struct err *err)
{
    enum kind kind;
    const char *name;
    if (draft_read_name(p->args, method, a, &kind, &name, err) < 0)
        return NULL;
    struct entry *e = entries_find(&d->entries, kind, p->ns, name);
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
        entry_delete(e);
    done(done_ctx, e ? "null" : NULL, e ? 4 : 0, &err);
    arena_done(&a);
}

static int change(const struct local_provision *d, const struct entry *e, const char *text, struct err *err)
{
    struct manifest manifest;
    int r = manifest_parse(text, d->map, &manifest, err);
    if (r < 0)
        return err_wrap(err, "%s", e->name);
    r = local_group_change(e->group, &manifest, err);
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
    struct entry *e = NULL;
    if (draft_read_restart(p->args, &a, &name, &worker, &manifest, &err) == 0 &&
        !(e = entries_find(&d->entries, KIND_WORKERGROUP, p->ns, name)))
        err_set(&err, ERR_NOT_FOUND, "there is no WorkerGroup %s/%.100s in this run", p->ns, name);
    else if (e && (d->entries.stopping || e->group->asked))
        err_set(&err, ERR_UNAVAILABLE, "%s is ending, and starts no more processes", e->name);
    else if (e && (!worker || change(d, e, manifest, &err) == 0))
        entry_start_again(e, &err);
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

static void capacity(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    const struct local_provision *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    (void)p;
    const char *json = nodes_capacity(d->entries.nodes, &a);
    done(done_ctx, json, strlen(json), &err);
    arena_done(&a);
}

static void ended(void *ctx, const void *lifetime, bool wanted)
{
    const struct local_provision *d = ctx;
    LIST_FOREACH(l, &d->entries.list) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (e->lifetime != lifetime)
            continue;
        e->lifetime = NULL;
        loop_timer_arm(e->abandoned, wanted ? LOCAL_PROVISION_ABANDONED_MS : 0);
    }
}

struct local_provision *local_provision_new(struct loop *loop, int nodes, int gpus, int cpus, const char *map)
{
    struct local_provision *d = xcalloc(1, sizeof *d);
    *d = (struct local_provision){.entries = {.loop = loop, .nodes = nodes_new(nodes, gpus, cpus), .gpus = gpus},
                                  .map = map};
    list_init(&d->entries.list);
    return d;
}

void local_provision_run(struct local_provision *d, const struct local_run *run)
{
    d->run = *run;
    d->entries.gateway = run->gateway;
    d->run.ended = on_ended;
    d->run.ctx = d;
}

void local_provision_free(struct local_provision *d)
{
    if (!d)
        return;
    LIST_FOREACH(l, &d->entries.list)
        entry_free(CONTAINER_OF(l, struct entry, link));
    nodes_free(d->entries.nodes);
    free(d);
}

struct provisioner local_provision_provisioner(struct local_provision *d)
{
    return (struct provisioner){.ctx = d,
                                .create = create,
                                .remove = delete,
                                .restart = restart,
                                .bundles = bundles,
                                .capacity = capacity,
                                .ended = ended};
}

struct local_group *local_provision_find(const struct local_provision *d, const char *uid)
{
    const struct entry *e = entries_by_uid(&d->entries, uid);
    return e ? e->group : NULL;
}

const char *local_provision_node(const struct local_provision *d, const char *uid, uint32_t rank)
{
    const struct entry *e = entries_by_uid(&d->entries, uid);
    if (!e || !e->group || !e->placed)
        return NULL;
    const struct workergroup *g = e->group->manifest.group;
    const uint32_t replica = rank / (uint32_t)g->spec.workers_per_replica;
    // A worker reports its own rank, which may be wrong.
    return replica < (uint32_t)g->spec.replicas ? e->assignment.nodes[replica] : NULL;
}

void local_provision_reap(struct local_provision *d)
{
    entries_reap(&d->entries);
}

void local_provision_stop(struct local_provision *d, bool again)
{
    d->entries.stopping = true;
    LIST_FOREACH(l, &d->entries.list) {
        struct local_group *g = CONTAINER_OF(l, struct entry, link)->group;
        if (g && (again || !g->asked)) // a group that is told twice kills its processes
            local_group_stop(g, "its run on this machine is ending");
    }
}

bool local_provision_idle(const struct local_provision *d)
{
    LIST_FOREACH(l, &d->entries.list)
        if (entry_runs(CONTAINER_OF(l, struct entry, link)))
            return false;
    return true;
}
