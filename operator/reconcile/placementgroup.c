// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/placementgroup.h"

#include "common/base/mem.h"
#include "operator/reconcile/reason.h"

const char *placementgroup_reconcile(const struct placementgroup *plg, int64_t now_ms, struct arena *a)
{
    static const char message[] = "PlacementGroups are not supported by this version: give the WorkerGroup a template";
    static const char *const types[] = {COND_ACCEPTED, COND_SCHEDULED, COND_READY, COND_FAILED};
    int64_t generation = plg->obj.meta.generation;
    if (plg->obj.meta.deleted_ms || (plg->observed_generation == generation && plg->n_conditions == ARRAY_LEN(types)))
        return NULL;
    struct condition conditions[ARRAY_LEN(types)];
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        const struct condition *old = condition_find(plg->conditions, plg->n_conditions, types[i]);
        bool same = old && old->status == CONDITION_FALSE && old->changed_ms;
        conditions[i] = (struct condition){
            .type = types[i],
            .status = CONDITION_FALSE,
            .reason = REASON_NOT_SUPPORTED,
            .message = message,
            .observed_generation = generation,
            .changed_ms = same ? old->changed_ms : now_ms,
        };
    }
    return placementgroup_status_patch(conditions, ARRAY_LEN(types), generation, a);
}
