// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/orphans.h"

#include "common/base/map.h"
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { DELAY_MS = 5000 }; // the group of the processes may be so new that the store gets it a moment later

struct orphans {
    const struct kube_client *client;
    const struct placementgroup_users *users;
    struct store *const *stores;
    struct agents *agents;
    struct map waiting; // keys of PlacementGroups; the values are unused
    struct loop_timer *timer;
    bool running;
};

void orphans_later(struct orphans *e, const char *ns, const char *placementgroup)
{
    _cleanup_(free_p) char *key = xasprintf("%s/%s", ns, placementgroup);
    map_set(&e->waiting, key, e);
    if (!loop_timer_armed(e->timer))
        loop_timer_arm(e->timer, DELAY_MS);
}

void orphans_now(struct orphans *e, const char *ns, const char *placementgroup)
{
    const struct object *plg = store_get(e->stores[KIND_PLACEMENTGROUP], ns, placementgroup);
    bool may = plg && e->agents && e->running && kube_may_decide(e->client);
    if (may && placementgroup_users_stop_orphans(e->users, e->agents, e->stores, plg))
        orphans_later(e, ns, placementgroup);
}

static void on_time(void *ctx)
{
    struct orphans *e = ctx;
    struct map now = e->waiting;
    const char *key;
    e->waiting = MAP_INIT;
    for (size_t i = 0; map_next(&now, &i, &key, NULL);) {
        const char *slash = strchr(key, '/');
        _cleanup_(free_p) char *ns = xasprintf("%.*s", (int)(slash - key), key);
        orphans_now(e, ns, slash + 1);
    }
    map_done(&now);
}

struct orphans *orphans_new(struct loop *loop, const struct kube_client *client,
                            const struct placementgroup_users *users, struct store *const *stores,
                            struct agents *agents)
{
    struct orphans *e = xcalloc(1, sizeof *e);
    *e = (struct orphans){.client = client, .users = users, .stores = stores, .agents = agents};
    e->timer = loop_timer_new(loop, on_time, e);
    return e;
}

void orphans_free(struct orphans *e)
{
    if (!e)
        return;
    map_done(&e->waiting);
    loop_timer_free(e->timer);
    free(e);
}

static void look_later(void *ctx, const struct object *o)
{
    orphans_later(ctx, o->meta.ns, o->meta.name);
}

void orphans_start(struct orphans *e)
{
    e->running = true;
    store_each(e->stores[KIND_PLACEMENTGROUP], look_later, e);
}

void orphans_stop(struct orphans *e)
{
    e->running = false;
}
