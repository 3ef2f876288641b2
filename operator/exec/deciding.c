// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/deciding.h"

#include "common/base/mem.h"
#include "operator/exec/abandoned.h"
#include "operator/exec/reaper.h"

#include <stdlib.h>

struct deciding {
    struct kube_client *client;
    struct group_controller *groups;
    struct placementgroup_controller *placementgroups;
    struct entries *placementgroup_entries; // of `placementgroups`
    struct reaper *reaper;
    struct abandoned *abandoned;
};

struct deciding *deciding_new(struct loop *loop, struct kube_client *client, struct store *const *stores,
                              struct group_controller *groups, struct placementgroup_controller *placementgroups)
{
    struct deciding *d = xcalloc(1, sizeof *d);
    *d = (struct deciding){.client = client, .groups = groups, .placementgroups = placementgroups};
    d->placementgroup_entries = placementgroup_controller_entries(placementgroups);
    d->reaper = reaper_new(client, stores);
    d->abandoned = abandoned_new(loop, client, stores, ABANDONED_AFTER_MS);
    return d;
}

void deciding_free(struct deciding *d)
{
    if (!d)
        return;
    placementgroup_controller_free(d->placementgroups);
    reaper_free(d->reaper);
    abandoned_free(d->abandoned);
    group_controller_free(d->groups);
    free(d);
}

void deciding_start(struct deciding *d)
{
    group_controller_start(d->groups);
    entries_start(d->placementgroup_entries);
    reaper_start(d->reaper);
    abandoned_start(d->abandoned);
}

void deciding_stop(struct deciding *d)
{
    group_controller_stop(d->groups);
    entries_stop(d->placementgroup_entries);
    reaper_stop(d->reaper);
    abandoned_stop(d->abandoned);
}

void deciding_lose(struct deciding *d)
{
    deciding_stop(d);
    kube_cancel_decided(d->client);
}

void deciding_retry(struct deciding *d)
{
    group_controller_retry(d->groups);
    controller_retry(d->placementgroup_entries->controller);
}

void deciding_look(struct deciding *d)
{
    group_controller_look(d->groups);
    entries_look(d->placementgroup_entries);
}

bool deciding_idle(const struct deciding *d)
{
    return group_controller_idle(d->groups) && controller_idle(d->placementgroup_entries->controller) &&
           reaper_idle(d->reaper) && abandoned_idle(d->abandoned);
}
