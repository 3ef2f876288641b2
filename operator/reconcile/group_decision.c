// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/group_decision.h"

#include "common/base/str.h"
#include "operator/reconcile/reason.h"

#include <stdlib.h>

int64_t group_decision_at_latest_ms(int64_t ms)
{
    return ms && ms % 1000 == 0 ? ms + 999 : ms;
}

bool group_decision_worker_differs(const struct group_decision *d)
{
    const struct group_revision *was = &d->wg->status.revision;
    return was->worker && !str_eq(was->worker, d->revision.worker);
}

bool group_decision_asks_for_more(const struct group_decision *d)
{
    const struct group_revision *was = &d->wg->status.revision;
    return d->pods.changed || (was->pods && !str_eq(was->pods, d->revision.pods)) || group_decision_worker_differs(d);
}

static void view_as_running(struct group_decision *d)
{
    d->view_running = *d->v;
    d->view_running.wg = d->v->as_running;
    d->view_running.placementgroups = d->v->placementgroups_running;
    d->view_running.placementgroup_services = d->v->placementgroup_services_running;
    d->view_running.as_running = NULL;
    d->v = &d->view_running;
    d->wg = d->view_running.wg;
    d->gang.v = &d->v->gang;
}

void group_decision_look_back(struct group_decision *d)
{
    const struct group_revision *was = &d->wg->status.revision;
    d->progress.of_before =
        conditions_was(&d->gang.conditions, SCHEDULED) && was->pods && !str_eq(was->pods, d->revision.pods);
    if (d->pods.bundles && d->progress.of_before)
        d->plan->master = d->wg->status.master_addr; // other groups avoid it
    if (!d->v->as_running && !d->pods.bundles)
        return;
    if (d->v->as_running)
        view_as_running(d);
    // On bundles, the pods of the earlier spec count although the new spec would have to wait for its bundles.
    group_pods_take(d->v, strtoull(was->pods ? was->pods : "", NULL, 16), d->a, &d->pods);
    d->gang.on_bundles = d->pods.bundles;
    d->plan->waits[WAIT_KILLED] = d->pods.killed;
}

// All pods existed once, so agents know the address of rank 0 and processes may have run. The status may not say so
// yet.
bool group_decision_was_whole(const struct group_decision *d)
{
    return conditions_was(&d->gang.conditions, SCHEDULED) || d->pods.ranks.told;
}

void group_decision_bound(struct group_decision *d)
{
    conditions_set(&d->gang.conditions, SCHEDULED, CONDITION_TRUE, REASON_BOUND,
                   d->pods.bundles ? arena_printf(d->a, "all %d bundles are reserved, in %d pod%s", d->pods.replicas,
                                                  d->pods.bundles->nodes, d->pods.bundles->nodes == 1 ? "" : "s")
                                   : arena_printf(d->a, "all %d pods are bound", d->pods.replicas));
}
