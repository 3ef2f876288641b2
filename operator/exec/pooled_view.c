// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/pooled_view.h"

static bool seen_before(const struct placementgroup *const *pools, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (pools[k] == pools[i])
            return true;
    return false;
}

void pooled_view_fill(const struct store *placementgroups, const struct store *pods, const struct workergroup *wg,
                      struct arena *a, struct group_view *v)
{
    size_t n = wg->spec.n_placement_groups, total = 0;
    const struct placementgroup **pools = arena_array(a, n, sizeof *pools);
    const struct object *const **owned = arena_array(a, n, sizeof *owned);
    size_t *n_owned = arena_array(a, n, sizeof *n_owned);
    for (size_t i = 0; i < n; i++) {
        const char *name = wg->spec.placement_groups[i].name;
        const struct object *o = placementgroups ? store_get(placementgroups, wg->obj.meta.ns, name) : NULL;
        pools[i] = o ? placementgroup_of(o) : NULL;
        if (o && !seen_before(pools, i))
            total += n_owned[i] = store_by_owner(pods, o->meta.uid, a, &owned[i]);
    }
    const struct pod **all = arena_array(a, total, sizeof *all);
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_owned[i]; k++)
            all[at++] = pod_of(owned[i][k]);
    v->pools = pools;
    v->pods = all;
    v->n_pods = total;
}
