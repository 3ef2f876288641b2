// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/bundles_view.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/reason.h"

#include <string.h>

static void find_placementgroups(const struct reconciler *groups, const struct workergroup *wg, struct arena *a,
                                 const struct placementgroup *const **ret, const struct service *const **ret_services)
{
    size_t n = wg->spec.n_placement_groups;
    const struct store *store = groups->options.shared->executor.stores[KIND_PLACEMENTGROUP];
    const struct placementgroup **found = arena_array(a, n, sizeof *found);
    const struct service **services = arena_array(a, n, sizeof *services);
    for (size_t i = 0; i < n; i++) {
        const char *ns = wg->obj.meta.ns;
        const struct object *o = store_get(store, ns, wg->spec.placement_groups[i].name);
        found[i] = o ? placementgroup_of(o) : NULL;
        services[i] = o ? reconciler_service(groups, ns, bundlepod_gang(found[i], a)) : NULL;
    }
    *ret = found;
    *ret_services = services;
}

static size_t add_once(const struct placementgroup **to, size_t n, const struct placementgroup *p)
{
    for (size_t i = 0; i < n; i++)
        if (to[i] == p)
            return n;
    if (p)
        to[n++] = p;
    return n;
}

// Collects the pods of all PlacementGroups where processes of the group run or will run.
static void find_pods(const struct store *pods_of_all, struct arena *a, struct group_view *v)
{
    size_t n_now = v->wg->spec.n_placement_groups,
           n_before = v->as_running ? v->as_running->spec.n_placement_groups : 0;
    const struct placementgroup **all = arena_array(a, n_now + n_before, sizeof *all);
    const struct object *const **owned = arena_array(a, n_now + n_before, sizeof *owned);
    size_t *n_owned = arena_array(a, n_now + n_before, sizeof *n_owned), n = 0, total = 0, at = 0;
    for (size_t i = 0; i < n_now; i++)
        n = add_once(all, n, v->placementgroups[i]);
    for (size_t i = 0; i < n_before; i++)
        n = add_once(all, n, v->placementgroups_running[i]);
    for (size_t i = 0; i < n; i++)
        total += n_owned[i] = store_by_owner(pods_of_all, &all[i]->obj.meta, a, &owned[i]);
    const struct pod **pods = arena_array(a, total, sizeof *pods);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_owned[i]; k++)
            pods[at++] = pod_of(owned[i][k]);
    v->gang.pods = pods;
    v->gang.n_pods = total;
}

struct other_users {
    const struct reconciler *groups;
    const struct workergroup *of;
    struct arena *a;
    struct other_user *items;
    size_t n, size;
};

static bool is_over(const struct workergroup *wg)
{
    static const char *const over[] = {COND_SUCCEEDED, COND_FAILED, COND_SUSPENDED};
    for (size_t i = 0; i < ARRAY_LEN(over); i++) {
        const struct condition *c = condition_find(wg->status.conditions, wg->status.n_conditions, over[i]);
        if (c && c->status == CONDITION_TRUE)
            return true;
    }
    return wg->obj.meta.deleted_ms;
}

// Returns the rendezvous of another group, or NULL if it has none. If this replica has decided about the group, the
// rendezvous is the one that it gave to the group last. Otherwise it is the one in the status, which another replica
// wrote.
static const char *master_of(const struct reconciler *groups, const struct object *o, const char *key)
{
    const struct reconciler_entry *e = reconciler_find(groups, key);
    bool decided = e && e->uid && str_eq(e->uid, o->meta.uid);
    return decided ? e->observations.memory.master : workergroup_of(o)->status.master_addr;
}

static void add_other_user(void *ctx, const char *key)
{
    struct other_users *to = ctx;
    const struct object *o = store_get(reconciler_objects(to->groups), to->of->obj.meta.ns, strchr(key, '/') + 1);
    if (!o || workergroup_of(o) == to->of || is_over(workergroup_of(o)))
        return;
    const char *master = master_of(to->groups, o, key);
    if (!master)
        return;
    if (to->n == to->size) {
        to->size = MAX(2 * to->size, (size_t)16);
        struct other_user *items = arena_array(to->a, to->size, sizeof *items);
        if (to->n)
            memcpy(items, to->items, to->n * sizeof *items);
        to->items = items;
    }
    to->items[to->n++] = (struct other_user){o->meta.name, master};
}

void bundles_view_fill(const struct reconciler *groups, const struct placementgroup_users *users,
                       const struct agents *agents, const struct workergroup *wg, struct arena *a, struct group_view *v)
{
    struct other_users others = {.groups = groups, .of = wg, .a = a};
    find_placementgroups(groups, wg, a, &v->placementgroups, &v->placementgroup_services);
    if (v->as_running)
        find_placementgroups(groups, v->as_running, a, &v->placementgroups_running,
                             &v->placementgroup_services_running);
    find_pods(groups->options.shared->executor.stores[KIND_POD], a, v);
    for (size_t i = 0; i < wg->spec.n_placement_groups; i++)
        placementgroup_users_each(users, wg->obj.meta.ns, wg->spec.placement_groups[i].name, add_other_user, &others);
    v->other_users = others.items;
    v->n_other_users = others.n;
    v->running = agents ? agents_running(agents, wg->obj.meta.uid) : 0;
}
