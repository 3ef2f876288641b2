// SPDX-License-Identifier: Apache-2.0
#include "operator/local/entry.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/local/claim.h"

#include <stdlib.h>

static bool uses(const struct entry *e, const struct entry *placement)
{
    for (int32_t i = 0; i < e->used.n; i++)
        if (e->used.items[i].on == placement)
            return true;
    return false;
}

void entry_free(struct entry *e)
{
    list_remove(&e->link);
    LIST_FOREACH(l, &e->of->list) {
        struct entry *user = CONTAINER_OF(l, struct entry, link);
        for (int32_t i = 0; i < user->used.n; i++)
            if (user->used.items[i].on == e)
                user->used.items[i].on = NULL;
    }
    nodes_leave(e->of->nodes, e->uid);
    if (e->gone && e->group) // otherwise the whole gateway is being freed
        gateway_group_gone(e->of->gateway, e->uid);
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

static int place_placement(struct entry *e, struct err *err)
{
    struct nodes_gang gang;
    int r = claim_of_placementgroup(placementgroup_of(e->placement), e->uid, &e->arena, &gang, err);
    if (r == 0)
        r = nodes_assign(e->of->nodes, &gang, &e->arena, &e->assignment, err);
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
    return r < 0 ? r : nodes_assign(e->of->nodes, &gang, &e->arena, &e->assignment, err);
}

static int place_group(struct entry *e, struct err *err)
{
    const struct workergroup *g = e->group->manifest.group;
    struct claimed_gpus claimed;
    int r = find_place(e, g, err);
    if (r < 0)
        return r;
    e->placed = true;
    r = claim_gpus(g, e->assignment.gpus, &e->arena, &claimed, err);
    if (r == 0)
        r = local_group_start(e->group, e->of->gpus ? &claimed : NULL, err);
    if (r < 0)
        nodes_leave(e->of->nodes, e->uid);
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

void entries_place_waiting(struct entries *es)
{
    LIST_FOREACH(l, &es->list) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        struct err err = ERR_INIT;
        if (!e->placed && !e->gone && !es->stopping && place(e, &err) < 0)
            wait_for(e, err.msg);
    }
}

bool entry_runs(const struct entry *e)
{
    if (e->group)
        return e->group->agent;
    LIST_FOREACH(l, &e->of->list) {
        const struct entry *user = CONTAINER_OF(l, struct entry, link);
        if (uses(user, e) && user->group->agent)
            return true;
    }
    return false;
}

static void stop_users(const struct entry *placement)
{
    _cleanup_(free_p) char *why = xasprintf("its PlacementGroup %s was deleted", placement->name);
    LIST_FOREACH(l, &placement->of->list) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (uses(e, placement) && !e->group->asked)
            local_group_stop(e->group, why);
    }
}

void entry_delete(struct entry *e)
{
    struct entries *es = e->of;
    e->gone = true;
    e->lifetime = NULL;
    loop_timer_disarm(e->abandoned);
    if (!e->group)
        stop_users(e);
    else if (!e->group->asked)
        local_group_stop(e->group, "it was deleted");
    if (entry_runs(e))
        return;
    entry_free(e);
    entries_place_waiting(es);
}

static void on_abandoned(void *ctx)
{
    entry_delete(ctx);
}

struct entry *entry_new(struct entries *es, const struct provision *p, const struct draft *draft)
{
    struct entry *e = xcalloc(1, sizeof *e);
    *e = (struct entry){.of = es,
                        .ns = xstrdup(p->ns),
                        .name = xstrdup(draft->name),
                        .lifetime = draft->detached ? NULL : p->lifetime,
                        .bound = !draft->detached,
                        .hash = xstrdup(draft->hash),
                        .arena = ARENA_INIT};
    e->abandoned = loop_timer_new(es->loop, on_abandoned, e);
    list_append(&es->list, &e->link);
    return e;
}

struct entry *entries_find(const struct entries *es, enum kind kind, const char *ns, const char *name)
{
    LIST_FOREACH(l, &es->list) {
        struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (!e->gone && (e->group != NULL) == (kind == KIND_WORKERGROUP) && str_eq(e->ns, ns) && str_eq(e->name, name))
            return e;
    }
    return NULL;
}

const struct entry *entries_by_uid(const struct entries *es, const char *uid)
{
    LIST_FOREACH(l, &es->list) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (str_eq(e->uid, uid))
            return e;
    }
    return NULL;
}

int entries_take_bundles(const struct entries *es, const char *ns, const struct workergroup *g,
                         struct used_bundles *used, struct err *err)
{
    const size_t n = g->spec.n_placement_groups;
    struct arena a = ARENA_INIT;
    const struct placementgroup **named = arena_array(&a, n, sizeof *named);
    const struct entry **entries = arena_array(&a, n, sizeof *entries);
    struct claimed_bundle *claimed;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        const char *name = g->spec.placement_groups[i].name;
        entries[i] = entries_find(es, KIND_PLACEMENTGROUP, ns, name);
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

int entry_begin(struct entry *e, struct err *err)
{
    struct err why = ERR_INIT;
    int r = place_or_wait(e, &why);
    if (r < 0) {
        err_set(err, r, "%s: %s", e->name, why.msg);
        entry_delete(e);
    }
    return r;
}

void entry_start_again(struct entry *e, struct err *err)
{
    if (!e->placed || local_group_restart(e->group))
        return;
    nodes_leave(e->of->nodes, e->uid);
    e->placed = false; // it has ended, so others may have its place now
    (void)place_or_wait(e, err);
}

void entries_reap(struct entries *es)
{
    bool left = false;
    LIST_FOREACH(l, &es->list) {
        const struct entry *e = CONTAINER_OF(l, struct entry, link);
        if (e->group)
            local_group_reap(e->group);
    }
    for (int groups = 1; groups >= 0; groups--) // groups first, then the PlacementGroups that they are on
        LIST_FOREACH(l, &es->list) {
            struct entry *e = CONTAINER_OF(l, struct entry, link);
            if (e->gone && (e->group != NULL) == groups && !entry_runs(e)) {
                left = left || !groups;
                entry_free(e);
            }
        }
    if (left)
        entries_place_waiting(es);
}
