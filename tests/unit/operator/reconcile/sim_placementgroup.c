// SPDX-License-Identifier: Apache-2.0
// The PlacementGroup of an operator in gang_operator.h.
#include "tests/unit/operator/reconcile/gang_operator.h"

#include "common/base/str.h"
#include "operator/reconcile/bundlepod.h"
#include "operator/reconcile/placementgroup_reconcile.h"
#include "operator/reconcile/reason.h"

#include <string.h>

static void note(struct observations *n, const struct object *object, const struct plan *p, int64_t now_ms)
{
    const struct placementgroup_status *s = &placementgroup_of(object)->status;
    const struct condition *ready = condition_find(s->conditions, s->n_conditions, COND_READY);
    if (ready && ready->status == CONDITION_TRUE && observations_calm(n, p, now_ms))
        observations_ready(n, ready->changed_ms, now_ms);
}

static void plan(struct sim_operator *o, const struct object *object, struct gang_view *gang, struct arena *a,
                 struct plan *ret)
{
    const struct placementgroup *plg = placementgroup_of(object);
    const struct object *service = store_get(o->processes[0].mirror.stores[KIND_SERVICE], "ml", bundlepod_gang(plg, a));
    bool *gpu_lost = arena_array(a, gang->n_pods, sizeof *gpu_lost);
    for (size_t i = 0; i < gang->n_pods; i++) {
        const char *uid = gang->pods[i]->obj.meta.uid;
        gpu_lost[i] = str_hash(uid, strlen(uid)) % 4 == 0; // counts once the pod is dead
    }
    gang->service = service ? service_of(service) : NULL;
    struct placementgroup_view v = {.plg = plg, .gang = *gang, .gpu_lost = gpu_lost, .used = o->w->used};
    placementgroup_reconcile(&v, a, ret);
}

const struct sim_owner sim_placementgroup = {true, plan, note};
