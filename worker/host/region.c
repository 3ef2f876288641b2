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
    int r = device_alloc(rank_device_of(d), len, &g->memory, err);
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

static bool is_last(struct region *g)
{
    return g && atomic_fetch_sub(&g->refs, 1) == 1;
}

void region_unref(struct region *g)
{
    if (!is_last(g))
        return;
    rank_device_drop(g->owner, g->memory);
    free(g);
}

void region_unref_now(struct region *g)
{
    struct err ignored = ERR_INIT;
    if (!is_last(g))
        return;
    if (rank_device_enter(g->owner, &ignored) == 0) { // else the GPU is lost, and all its memory, too
        device_free(rank_device_of(g->owner), g->memory);
        rank_device_leave(g->owner);
    }
    free(g);
}
