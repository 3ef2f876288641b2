// SPDX-License-Identifier: Apache-2.0
#include "operator/local/desk.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/api/draft.h"
#include "operator/local/nodes.h"

#include <stdlib.h>
#include <string.h>

enum { MANIFEST_MAX = 1024 * 1024 };

struct entry {
    struct list link;
    struct desk *desk;
    struct local_group *group;
    const void *lifetime; // NULL = detached, or the session is away
    bool bound;           // it goes with a session
    bool placed;          // it has its nodes, and was started
    bool gone;            // nobody finds it any more; it lives until its agent has ended
    char *hash;           // of the request that made it
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
    bool stopping;       // nothing new begins
    struct list entries; // by age: the first to come is assigned first
};

static void entry_free(struct entry *e)
{
    list_remove(&e->link);
    nodes_leave(e->desk->nodes, local_group_uid(e->group));
    if (e->gone) // else the whole gateway is
        gateway_group_gone(e->desk->run.gateway, local_group_uid(e->group));
    loop_timer_free(e->abandoned);
    local_group_free(e->group);
    arena_done(&e->arena);
    free(e->hash);
    free(e);
}

// What has a place, and what waits for one

static int place(struct entry *e, struct err *err)
{
    const struct workergroup *g = local_group_spec(e->group);
    const struct worker_spec *w = &g->spec.worker;
    int r = nodes_assign(e->desk->nodes, local_group_uid(e->group), g, &e->arena, &e->assignment, err);
    if (r < 0)
        return r;
    const struct local_gpus gpus = {.list = e->desk->gpus ? e->assignment.gpus : NULL,
                                    .each = w->gpus,
                                    .own = w->gpu_visibility == GPU_VISIBILITY_OWN ||
                                           (w->gpu_visibility == GPU_VISIBILITY_DEFAULT && w->module)};
    e->placed = true;
    r = local_group_start(e->group, &gpus, err);
    if (r < 0)
        nodes_leave(e->desk->nodes, local_group_uid(e->group));
    return r;
}

static void place_waiting(struct desk *d)
{
    LIST_FOREACH(l, &d->entries) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        struct err err = ERR_INIT;
        if (!e->placed && !e->gone && !d->stopping && place(e, &err) < 0)
            local_group_waits(e->group, err.msg);
    }
}

// Its processes have ended: nobody needs its nodes any more, whether it was deleted or not.
static void on_ended(void *ctx, struct local_group *g)
{
    struct desk *d = ctx;
    nodes_leave(d->nodes, local_group_uid(g));
    place_waiting(d);
}

static void delete_entry(struct entry *e)
{
    struct desk *d = e->desk;
    e->gone = true;
    e->lifetime = NULL;
    loop_timer_disarm(e->abandoned);
    if (local_group_stop(e->group))
        return;
    entry_free(e);
    place_waiting(d);
}

static void on_abandoned(void *ctx)
{
    delete_entry(ctx);
}

static struct entry *find(const struct desk *d, const char *ns, const char *name)
{
    LIST_FOREACH(l, &d->entries) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (!e->gone && str_eq(local_group_ns(e->group), ns) && str_eq(local_group_name(e->group), name))
            return e;
    }
    return NULL;
}

// What the gateway calls

static void answer(const struct entry *e, provisioner_done_fn done, void *done_ctx)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_str(&w, "namespace", local_group_ns(e->group));
    writer_str(&w, "name", local_group_name(e->group));
    writer_str(&w, "uid", local_group_uid(e->group));
    writer_str(&w, "lifetime", e->bound ? "Session" : "Detached");
    writer_object_end(&w);
    done(done_ctx, buf_str(&w.buf), w.buf.len, &(struct err){0});
    writer_done(&w);
}

// The same request again, of a program that has come back or did not hear the answer.
static int take_over(struct entry *e, const struct provision *p, const struct draft *draft, struct err *err)
{
    if (!str_eq(e->hash, draft->hash) || e->bound == draft->detached)
        return err_set(err, ERR_EXISTS,
                       "there is a group %s/%s in this run already, and it was not made by this request; delete it or "
                       "take another name",
                       p->ns, draft->name);
    e->lifetime = e->bound ? p->lifetime : NULL;
    loop_timer_disarm(e->abandoned);
    return 0;
}

static int make(struct desk *d, const struct provision *p, const struct draft *draft, struct entry **ret,
                struct err *err)
{
    struct buf text = BUF_INIT(MANIFEST_MAX);
    struct manifest manifest;
    size_t n = 0;
    LIST_FOREACH(l, &d->entries)
        n++;
    if (n >= DESK_GROUPS_MAX)
        return err_set(err, ERR_LIMIT, "this run has %zu groups, which is the most: delete some", n);
    buf_puts(&text, draft->manifest);
    int r = manifest_parse(&text, NULL, d->map, &manifest, err);
    buf_done(&text);
    if (r == 0 && manifest.group->spec.n_placement_groups) {
        r = err_set(err, ERR_INVALID, "spec.placement.groups: a local run has no PlacementGroups");
        manifest_done(&manifest);
    }
    if (r < 0)
        return err_wrap(err, "%s", draft->name);
    const struct local_job job = {p->ns, draft->name, manifest.processes, manifest.command, manifest};
    struct entry *e = xcalloc(1, sizeof *e);
    *e = (struct entry){.desk = d,
                        .group = local_group_new(&d->run, &job),
                        .lifetime = draft->detached ? NULL : p->lifetime,
                        .bound = !draft->detached,
                        .hash = xstrdup(draft->hash),
                        .arena = ARENA_INIT};
    e->abandoned = loop_timer_new(d->loop, on_abandoned, e);
    list_append(&d->entries, &e->link);
    *ret = e;
    return 0;
}

// What has no place now waits for one. What can never have one is refused, and so is what cannot be started.
static int begin(struct entry *e, struct err *err)
{
    struct err why = ERR_INIT;
    int r = place(e, &why);
    if (r == ERR_UNAVAILABLE && !e->placed) {
        local_group_waits(e->group, why.msg);
        return 0;
    }
    if (r < 0) {
        err_set(err, r, "%s: %s", local_group_name(e->group), why.msg);
        delete_entry(e);
    }
    return r;
}

static int check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= 63 && name[0] != '-' && name[n - 1] != '-';
    for (size_t i = 0; i < n && ok; i++)
        ok = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || name[i] == '-';
    return ok ? 0
              : err_set(err, ERR_INVALID,
                        "the group %.100s: names have 1 to 63 characters of a to z, 0 to 9 and -, which is neither the "
                        "first nor the last",
                        name);
}

static void create(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct desk *d = ctx;
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct draft draft;
    int r = draft_read(p->args, p->ns, p->who.name, clock_wall_ms(loop_clock(d->loop)), &a, &draft, &err);
    if (r == 0 && !draft.detached && !p->lifetime)
        r = err_set(&err, ERR_INVALID,
                    "a single request has no session that the group could go with: say "
                    "\"lifetime\": \"Detached\", or open a websocket");
    if (r == 0)
        r = check_name(draft.name, &err);
    if (r == 0 && d->stopping)
        r = err_set(&err, ERR_UNAVAILABLE, "%s: this run is ending and starts no more groups", draft.name);
    struct entry *e = r == 0 ? find(d, p->ns, draft.name) : NULL;
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

static void delete (void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *root = NULL;
    const char *name =
        json_parse(p->args, strlen(p->args), NULL, &a, &root, &err) == 0 ? json_str(json_get(root, "group"), &a) : NULL;
    struct entry *e = str_empty(name) ? NULL : find(ctx, p->ns, name);
    if (str_empty(name) || json_count(root) != 1)
        err_set(&err, ERR_INVALID, "group.delete needs {\"group\": the name of a group of namespace %s}", p->ns);
    else if (!e)
        err_set(&err, ERR_NOT_FOUND, "there is no group %s/%.100s in this run", p->ns, name);
    if (err.code) {
        done(done_ctx, NULL, 0, &err);
    } else {
        delete_entry(e);
        done(done_ctx, "null", 4, &(struct err){0});
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

struct desk *desk_new(struct loop *loop, int nodes, int gpus, const char *map)
{
    struct desk *d = xcalloc(1, sizeof *d);
    *d = (struct desk){.loop = loop, .nodes = nodes_new(nodes, gpus), .map = map, .gpus = gpus};
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
    return (struct provisioner){.ctx = d, .create = create, .remove = delete, .ended = ended};
}

static const struct entry *by_uid(const struct desk *d, const char *uid)
{
    LIST_FOREACH(l, &d->entries) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (str_eq(local_group_uid(e->group), uid))
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
    return e && e->placed ? e->assignment.nodes[rank / (uint32_t)local_group_spec(e->group)->spec.workers_per_replica]
                          : NULL;
}

void desk_reap(struct desk *d)
{
    LIST_FOREACH(l, &d->entries) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        local_group_reap(e->group);
        if (e->gone && !local_group_runs(e->group))
            entry_free(e);
    }
}

void desk_stop(struct desk *d, bool again)
{
    d->stopping = true;
    LIST_FOREACH(l, &d->entries) {
        struct local_group *g = CONTAINER_OF(l, struct entry, link)->group;
        if (again || !local_group_stopped(g)) // one that is told twice kills its processes
            local_group_stop(g);
    }
}

bool desk_idle(const struct desk *d)
{
    LIST_FOREACH(l, &d->entries)
        if (local_group_runs(CONTAINER_OF(l, struct entry, link)->group))
            return false;
    return true;
}
