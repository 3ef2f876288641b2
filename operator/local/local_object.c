// SPDX-License-Identifier: Apache-2.0
#include "operator/local/local_object.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/local/claim.h"
#include "operator/reconcile/wait.h"

#include <stdlib.h>

static bool uses(const struct local_object *o, const struct local_object *placementgroup)
{
    for (int32_t i = 0; i < o->used.n; i++)
        if (o->used.items[i].on == placementgroup)
            return true;
    return false;
}

void local_object_free(struct local_object *o)
{
    list_remove(&o->link);
    LIST_FOREACH(l, &o->of->list) {
        struct local_object *user = CONTAINER_OF(l, struct local_object, link);
        for (int32_t i = 0; i < user->used.n; i++)
            if (user->used.items[i].on == o)
                user->used.items[i].on = NULL;
    }
    nodes_leave(o->of->nodes, o->uid);
    if (o->gone && o->group) // otherwise the whole gateway is being freed
        gateway_group_gone(o->of->gateway, o->uid);
    loop_timer_free(o->abandoned);
    loop_timer_free(o->again);
    local_group_free(o->group);
    object_unref(o->placementgroup);
    arena_done(&o->arena);
    free(o->used.items);
    free(o->ns);
    free(o->name);
    free(o->uid);
    free(o->hash);
    free(o->waits);
    free(o);
}

static int use_bundles(struct local_object *o, struct err *err)
{
    const struct used_bundles *s = &o->used;
    const char **nodes = arena_array(&o->arena, (size_t)s->n, sizeof *nodes);
    const char **gpus = arena_array(&o->arena, (size_t)s->n, sizeof *gpus);
    for (int32_t i = 0; i < s->n; i++) {
        const struct local_object *on = s->items[i].on;
        if (!on)
            return err_set(err, ERR_UNAVAILABLE, "its PlacementGroup was deleted");
        if (!on->placed)
            return err_set(err, ERR_UNAVAILABLE, "PlacementGroup %s is not ready: %s", on->name, on->waits);
        nodes[i] = arena_strdup(&o->arena, on->assignment.nodes[s->items[i].bundle]);
        gpus[i] = arena_strdup(&o->arena, on->assignment.gpus[s->items[i].bundle]);
    }
    o->assignment = (struct nodes_assignment){nodes, gpus};
    return 0;
}

static int find_nodes(struct local_object *o, struct err *err)
{
    struct nodes_gang gang;
    int r = o->group ? claim_of_group(o->group->manifest.group, o->uid, &o->arena, &gang, err)
                     : claim_of_placementgroup(placementgroup_of(o->placementgroup), o->uid, &o->arena, &gang, err);
    return r < 0 ? r : nodes_assign(o->of->nodes, &gang, &o->arena, &o->assignment, err);
}

static int place(struct local_object *o, struct err *err)
{
    arena_done(&o->arena); // of the last try: a waiting object is tried whenever another one ends
    o->assignment = (struct nodes_assignment){0};
    int r = o->used.n ? use_bundles(o, err) : find_nodes(o, err);
    o->placed = r == 0;
    return r;
}

static void leave(struct local_object *o)
{
    nodes_leave(o->of->nodes, o->uid);
    o->placed = false;
}

// Starts the processes of an object that is placed. If that fails, others may have its place, and it is tried again
// later.
static int start(struct local_object *o, struct err *err)
{
    struct claimed_gpus claimed;
    if (!o->group)
        return 0;
    int r = claim_gpus(o->group->manifest.group, o->assignment.gpus, &o->arena, &claimed, err);
    if (r == 0)
        r = local_group_start(o->group, o->of->gpus ? &claimed : NULL, err);
    o->tries = r < 0 ? o->tries + 1 : 0;
    if (r == 0) {
        loop_timer_disarm(o->again);
    } else {
        leave(o);
        loop_timer_arm(o->again, wait_backoff_ms(WAIT_RETRY_FIRST_MS, WAIT_RETRY_MAX_MS, o->tries, 0));
    }
    return r;
}

static void wait_for(struct local_object *o, const char *why)
{
    if (o->group) {
        local_group_waits(o->group, why);
        return;
    }
    free(o->waits);
    o->waits = xstrdup(why);
}

// Places and starts it. If there is no place now, it waits for one.
static int begin(struct local_object *o, struct err *err)
{
    int r = place(o, err);
    if (r == 0)
        return start(o, err);
    if (r != ERR_UNAVAILABLE)
        return r;
    wait_for(o, err->msg);
    *err = (struct err)ERR_INIT;
    return 0;
}

static void try_again(struct local_object *o)
{
    struct err err = ERR_INIT;
    bool ends = o->gone || o->of->stopping || (o->group && o->group->asked);
    if (!o->placed && !ends && begin(o, &err) < 0)
        wait_for(o, err.msg);
}

static void on_again(void *ctx)
{
    try_again(ctx);
}

void local_objects_place_waiting(struct local_objects *all)
{
    LIST_FOREACH(l, &all->list)
        try_again(CONTAINER_OF(l, struct local_object, link));
}

bool local_object_runs(const struct local_object *o)
{
    if (o->group)
        return o->group->agent;
    LIST_FOREACH(l, &o->of->list) {
        const struct local_object *user = CONTAINER_OF(l, struct local_object, link);
        if (uses(user, o) && user->group->agent)
            return true;
    }
    return false;
}

static void stop_users(const struct local_object *placementgroup)
{
    _cleanup_(free_p) char *why = xasprintf("its PlacementGroup %s was deleted", placementgroup->name);
    LIST_FOREACH(l, &placementgroup->of->list) {
        const struct local_object *o = CONTAINER_OF(l, struct local_object, link);
        if (uses(o, placementgroup) && !o->group->asked)
            local_group_stop(o->group, why);
    }
}

void local_object_delete(struct local_object *o)
{
    struct local_objects *all = o->of;
    o->gone = true;
    o->lifetime = NULL;
    loop_timer_disarm(o->abandoned);
    if (!o->group)
        stop_users(o);
    else if (!o->group->asked)
        local_group_stop(o->group, "it was deleted");
    if (local_object_runs(o))
        return;
    local_object_free(o);
    local_objects_place_waiting(all);
}

static void on_abandoned(void *ctx)
{
    local_object_delete(ctx);
}

struct local_object *local_object_new(struct local_objects *all, const struct provision *p, const struct draft *draft)
{
    struct local_object *o = xcalloc(1, sizeof *o);
    *o = (struct local_object){.of = all,
                               .ns = xstrdup(p->ns),
                               .name = xstrdup(draft->name),
                               .lifetime = draft->detached ? NULL : p->lifetime,
                               .bound = !draft->detached,
                               .hash = xstrdup(draft->hash),
                               .arena = ARENA_INIT};
    o->abandoned = loop_timer_new(all->loop, on_abandoned, o);
    o->again = loop_timer_new(all->loop, on_again, o);
    list_append(&all->list, &o->link);
    return o;
}

struct local_object *local_objects_find(const struct local_objects *all, enum kind kind, const char *ns,
                                        const char *name)
{
    LIST_FOREACH(l, &all->list) {
        struct local_object *o = CONTAINER_OF(l, struct local_object, link);
        if (!o->gone && (o->group != NULL) == (kind == KIND_WORKERGROUP) && str_eq(o->ns, ns) && str_eq(o->name, name))
            return o;
    }
    return NULL;
}

const struct local_object *local_objects_by_uid(const struct local_objects *all, const char *uid)
{
    LIST_FOREACH(l, &all->list) {
        const struct local_object *o = CONTAINER_OF(l, struct local_object, link);
        if (str_eq(o->uid, uid))
            return o;
    }
    return NULL;
}

int local_objects_take_bundles(const struct local_objects *all, const char *ns, const struct workergroup *g,
                               struct used_bundles *used, struct err *err)
{
    const size_t n = g->spec.n_placement_groups;
    struct arena a = ARENA_INIT;
    const struct placementgroup **named = arena_array(&a, n, sizeof *named);
    const struct local_object **objects = arena_array(&a, n, sizeof *objects);
    struct claimed_bundle *claimed;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *name = g->spec.placement_groups[i].name;
        objects[i] = local_objects_find(all, KIND_PLACEMENTGROUP, ns, name);
        if (objects[i])
            named[i] = placementgroup_of(objects[i]->placementgroup);
        else
            r = err_set(err, ERR_NOT_FOUND, "there is no PlacementGroup %s/%s in this run", ns, name);
    }
    if (r == 0 && n)
        r = claim_bundles(g, named, &a, &claimed, err);
    if (r == 0 && n) {
        *used = (struct used_bundles){xcalloc((size_t)g->spec.replicas, sizeof *used->items), g->spec.replicas};
        for (int32_t i = 0; i < used->n; i++)
            used->items[i] = (struct used_bundle){objects[claimed[i].of], claimed[i].bundle};
    }
    arena_done(&a);
    return r;
}

int local_object_begin(struct local_object *o, struct err *err)
{
    struct err why = ERR_INIT;
    int r = begin(o, &why);
    if (r < 0) {
        err_set(err, r, "%s: %s", o->name, why.msg);
        local_object_delete(o);
    }
    return r;
}

void local_object_start_again(struct local_object *o, struct err *err)
{
    if (o->placed && local_group_restart(o->group))
        return;
    if (o->placed)
        leave(o); // it has ended, so others may have its place now
    if (begin(o, err) < 0)
        wait_for(o, err->msg);
}

void local_objects_reap(struct local_objects *all)
{
    bool left = false;
    LIST_FOREACH(l, &all->list) {
        const struct local_object *o = CONTAINER_OF(l, struct local_object, link);
        if (o->group)
            local_group_reap(o->group);
    }
    for (int groups = 1; groups >= 0; groups--) // groups first, then the PlacementGroups that they are on
        LIST_FOREACH(l, &all->list) {
            struct local_object *o = CONTAINER_OF(l, struct local_object, link);
            if (o->gone && (o->group != NULL) == groups && !local_object_runs(o)) {
                left = left || !groups;
                local_object_free(o);
            }
        }
    if (left)
        local_objects_place_waiting(all);
}
