// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/pooled_view.h"

#include "common/base/mem.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/reason.h"

#include <string.h>

static bool seen_before(const struct placementgroup *const *pools, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (pools[k] == pools[i])
            return true;
    return false;
}

static const struct service *service_of_pool(const struct pooled_source *s, const struct placementgroup *plg,
                                             struct arena *a)
{
    const struct object *o = store_get(s->services, plg->obj.meta.ns, bundlepod_gang(plg, a));
    return o && !o->meta.deleted_ms ? service_of(o) : NULL;
}

static void fill_pools(const struct pooled_source *s, const struct workergroup *wg, struct arena *a,
                       struct group_view *v)
{
    size_t n = wg->spec.n_placement_groups, total = 0, at = 0;
    const struct placementgroup **pools = arena_array(a, n, sizeof *pools);
    const struct service **services = arena_array(a, n, sizeof *services);
    const struct object *const **owned = arena_array(a, n, sizeof *owned);
    size_t *n_owned = arena_array(a, n, sizeof *n_owned);
    for (size_t i = 0; i < n; i++) {
        const char *name = wg->spec.placement_groups[i].name;
        const struct object *o = s->placementgroups ? store_get(s->placementgroups, wg->obj.meta.ns, name) : NULL;
        pools[i] = o ? placementgroup_of(o) : NULL;
        services[i] = o ? service_of_pool(s, pools[i], a) : NULL;
        if (o && !seen_before(pools, i))
            total += n_owned[i] = store_by_owner(s->pods, o->meta.uid, a, &owned[i]);
    }
    const struct pod **all = arena_array(a, total, sizeof *all);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_owned[i]; k++)
            all[at++] = pod_of(owned[i][k]);
    v->pools = pools;
    v->pool_services = services;
    v->pods = all;
    v->n_pods = total;
}

struct neighbours {
    const struct pooled_source *source;
    const struct workergroup *of;
    struct arena *a;
    struct neighbour *items;
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

static void add_neighbour(void *ctx, const char *key)
{
    struct neighbours *to = ctx;
    const struct pooled_source *s = to->source;
    const struct object *o = store_get(s->groups, to->of->obj.meta.ns, strchr(key, '/') + 1);
    if (!o || workergroup_of(o) == to->of || is_over(workergroup_of(o)))
        return;
    const char *master = s->master_of(s->ctx, o, key);
    if (!master)
        return;
    if (to->n == to->size) {
        to->size = MAX(2 * to->size, (size_t)16);
        struct neighbour *items = arena_array(to->a, to->size, sizeof *items);
        if (to->n)
            memcpy(items, to->items, to->n * sizeof *items);
        to->items = items;
    }
    to->items[to->n++] = (struct neighbour){o->meta.name, master};
}

void pooled_view_fill(const struct pooled_source *s, const struct agents *agents, const struct workergroup *wg,
                      struct arena *a, struct group_view *v)
{
    struct neighbours near = {.source = s, .of = wg, .a = a};
    fill_pools(s, wg, a, v);
    for (size_t i = 0; i < wg->spec.n_placement_groups; i++)
        tenancy_each(s->tenancy, wg->obj.meta.ns, wg->spec.placement_groups[i].name, add_neighbour, &near);
    v->neighbours = near.items;
    v->n_neighbours = near.n;
    v->running = agents ? agents_running(agents, wg->obj.meta.uid) : 0;
}
