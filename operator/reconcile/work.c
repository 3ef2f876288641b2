// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/work.h"

#include "common/base/str.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>

int64_t work_at_latest_ms(int64_t ms)
{
    return ms && ms % 1000 == 0 ? ms + 999 : ms;
}

bool work_worker_differs(const struct work *w)
{
    const struct group_revision *was = &w->wg->status.revision;
    return was->worker && !str_eq(was->worker, w->revision.worker);
}

bool work_asks_for_more(const struct work *w)
{
    const struct group_revision *was = &w->wg->status.revision;
    return w->pods.changed || (was->pods && !str_eq(was->pods, w->revision.pods)) || work_worker_differs(w);
}

void work_look_back(struct work *w)
{
    const struct group_revision *was = &w->wg->status.revision;
    w->progress.of_before =
        conditions_was(&w->gang.conditions, SCHEDULED) && was->pods && !str_eq(was->pods, w->revision.pods);
    if (w->pods.bundles && w->progress.of_before)
        w->plan->master = w->wg->status.master_addr; // other groups avoid it
    if (!w->v->before)
        return;
    w->view_before = *w->v;
    w->view_before.wg = w->v->before;
    w->view_before.placementgroups = w->v->placementgroups_before;
    w->view_before.placementgroup_services = w->v->placementgroup_services_before;
    w->view_before.before = NULL;
    w->v = &w->view_before;
    w->wg = w->view_before.wg;
    w->gang.v = &w->v->gang;
    w->gang.node_lost_s = w->wg->spec.node_lost_s;
    group_pods_take(w->v, strtoull(was->pods ? was->pods : "", NULL, 16), w->a, &w->pods);
    w->gang.borrowed = w->pods.bundles;
    w->plan->waits[PATIENCE_KILLED] = w->pods.killed;
}

// All pods existed once, so agents know the address of rank 0 and processes may have run. The status may not say so
// yet.
bool work_was_whole(const struct work *w)
{
    return conditions_was(&w->gang.conditions, SCHEDULED) || w->pods.ranks.told;
}

void work_bound(struct work *w)
{
    conditions_set(&w->gang.conditions, SCHEDULED, CONDITION_TRUE, REASON_BOUND,
                   w->pods.bundles ? arena_printf(w->a, "all %d bundles are reserved, in %d pod%s", w->pods.replicas,
                                                  w->pods.bundles->nodes, w->pods.bundles->nodes == 1 ? "" : "s")
                                   : arena_printf(w->a, "all %d pods are bound", w->pods.replicas));
}
