// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/deciding.h"

#include "common/base/mem.h"
#include "operator/exec/abandoned.h"
#include "operator/exec/pod_reaper.h"

#include <stdlib.h>

struct deciding {
    struct kube_client *client;
    struct group_controller *groups;
    struct placementgroup_controller *placementgroups;
    struct reconciler *placementgroup_reconciler; // of `placementgroups`
    struct pod_reaper *reaper;
    struct abandoned *abandoned;
};

struct deciding *deciding_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                              struct group_controller *groups, struct placementgroup_controller *placementgroups)
{
    struct deciding *d = xcalloc(1, sizeof *d);
    *d = (struct deciding){.client = client, .groups = groups, .placementgroups = placementgroups};
    d->placementgroup_reconciler = placementgroup_controller_reconciler(placementgroups);
    d->reaper = pod_reaper_new(client, stores);
    d->abandoned = abandoned_new(loop, client, stores, ABANDONED_AFTER_MS);
    return d;
}

void deciding_free(struct deciding *d)
{
    if (!d)
        return;
    placementgroup_controller_free(d->placementgroups);
    pod_reaper_free(d->reaper);
    abandoned_free(d->abandoned);
    group_controller_free(d->groups);
    free(d);
}

void deciding_start(struct deciding *d)
{
    group_controller_start(d->groups);
    reconciler_start(d->placementgroup_reconciler);
    pod_reaper_start(d->reaper);
    abandoned_start(d->abandoned);
}

void deciding_stop(struct deciding *d)
{
    group_controller_stop(d->groups);
    reconciler_stop(d->placementgroup_reconciler);
    pod_reaper_stop(d->reaper);
    abandoned_stop(d->abandoned);
}

void deciding_lose(struct deciding *d)
{
    deciding_stop(d);
    kube_cancel_decided(d->client);
}

void deciding_retry(struct deciding *d, int64_t away_ms)
{
    group_controller_retry(d->groups, away_ms);
    controller_retry(d->placementgroup_reconciler->controller);
}

void deciding_look(struct deciding *d)
{
    group_controller_look(d->groups);
    reconciler_look(d->placementgroup_reconciler);
}

bool deciding_idle(const struct deciding *d)
{
    return group_controller_idle(d->groups) && controller_idle(d->placementgroup_reconciler->controller) &&
           pod_reaper_idle(d->reaper) && abandoned_idle(d->abandoned);
}
