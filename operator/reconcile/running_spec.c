// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/running_spec.h"

#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"

#include <string.h>

enum { REPLICAS_MAX = 10000, WORKERS_MAX = 64 }; // limits of the schema; anybody may have written the status

static bool same_placementgroups(const struct workergroup_spec *s, const struct group_revision *r)
{
    bool same = s->n_placement_groups == r->n_groups;
    for (size_t i = 0; same && i < r->n_groups; i++)
        same = str_eq(s->placement_groups[i].name, r->groups[i].name) &&
               str_eq(s->placement_groups[i].bundles, r->groups[i].bundles);
    return same;
}

// The port that the processes on bundles were given, if the spec now asks for another one; 0 = none.
static int32_t port_before(const struct workergroup *wg)
{
    const char *master = wg->status.master_addr, *colon = master ? strrchr(master, ':') : NULL;
    int64_t port = 0;
    if (!wg->spec.n_placement_groups || !wg->spec.rendezvous_port || !colon)
        return 0;
    str_to_i64(colon + 1, &port);
    return port > 0 && port <= UINT16_MAX && port != wg->spec.rendezvous_port ? (int32_t)port : 0;
}

const struct workergroup *running_spec(const struct workergroup *wg, struct arena *a)
{
    const struct group_revision *r = &wg->status.revision;
    const struct workergroup_spec *s = &wg->spec;
    const struct condition *up = condition_find(wg->status.conditions, wg->status.n_conditions, COND_SCHEDULED);
    bool known = r->replicas >= 1 && r->replicas <= REPLICAS_MAX && r->workers_per_replica >= 1 &&
                 r->workers_per_replica <= WORKERS_MAX && !r->n_groups == !s->n_placement_groups;
    int32_t port = port_before(wg);
    bool same = !port && s->replicas == r->replicas && s->workers_per_replica == r->workers_per_replica &&
                same_placementgroups(s, r);
    if (!known || same || !up || up->status != CONDITION_TRUE)
        return NULL;
    struct workergroup *before = arena_memdup(a, wg, sizeof *wg);
    before->spec.replicas = r->replicas;
    before->spec.workers_per_replica = r->workers_per_replica;
    before->spec.placement_groups = r->groups;
    before->spec.n_placement_groups = r->n_groups;
    if (port)
        before->spec.rendezvous_port = port;
    return before;
}

bool running_spec_worker_differs(const struct workergroup *wg, struct arena *a)
{
    const char *was = wg->status.revision.worker;
    return was && !str_eq(was, group_hash_text(group_worker_hash(wg), a));
}
