// SPDX-License-Identifier: Apache-2.0
#include "worker/host/region.h"

#include "common/base/mem.h"

#include <stdlib.h>

int region_new(struct rank_device *d, size_t len, struct region **ret, struct err *err)
{
    struct region *g = xcalloc(1, sizeof *g);
    g->owner = d;
    g->len = len;
    atomic_init(&g->refs, 1);
    int r = sweeper_alloc(rank_device_sweeper(d), rank_device_of(d), len, SWEEPER_LIMIT_MS, &g->memory, err);
    if (r < 0)
        free(TAKE_PTR(g));
    *ret = g;
    return r;
}

void region_share(struct region *g)
{
    struct err ignored = ERR_INIT;
    g->shared = device_export(rank_device_of(g->owner), g->memory, &g->handle, &ignored) == 0;
}

struct region *region_ref(struct region *g)
{
    atomic_fetch_add(&g->refs, 1);
    return g;
}

bool region_is_ours(const struct region *g)
{
    return atomic_load(&g->refs) == 1;
}

void region_unref(struct region *g)
{
    if (!g || atomic_fetch_sub(&g->refs, 1) > 1)
        return;
    sweeper_drop(rank_device_sweeper(g->owner), rank_device_of(g->owner), g->memory);
    free(g);
}
