// SPDX-License-Identifier: Apache-2.0
#include "common/wire/grid.h"

#include "common/base/str.h"

int grid_find(const struct grid *g, const char *dim)
{
    for (size_t i = 0; i < g->n_dims; i++)
        if (str_eq(g->dims[i].name, dim))
            return (int)i;
    return -1;
}

uint32_t grid_size(const struct grid *g, const char *dim)
{
    int i = grid_find(g, dim);
    return i < 0 ? 1 : g->dims[i].size;
}

uint32_t grid_at(const struct grid *g, uint32_t rank, int i)
{
    if (i < 0)
        return 0;
    for (size_t k = g->n_dims; k-- > (size_t)i + 1;)
        rank /= g->dims[k].size;
    return rank % g->dims[i].size;
}

int grid_check(const struct grid *g, uint32_t world, struct err *err)
{
    uint64_t product = 1;
    if (!g->n_dims || g->n_dims > GRID_DIMS_MAX)
        return err_set(err, ERR_INVALID, "mesh '%s' has %zu dimensions; 1 to %d are allowed", g->name, g->n_dims,
                       GRID_DIMS_MAX);
    for (size_t i = 0; i < g->n_dims; i++) {
        if (str_empty(g->dims[i].name) || grid_find(g, g->dims[i].name) != (int)i)
            return err_set(err, ERR_INVALID, "mesh '%s': the name of dimension %zu is missing or there twice", g->name,
                           i);
        product *= g->dims[i].size;
        if (product > UINT32_MAX)
            break;
    }
    if (product != world)
        return err_set(err, ERR_INVALID, "mesh '%s' is for %s%llu ranks, the group has %u", g->name,
                       product > UINT32_MAX ? "more than " : "",
                       (unsigned long long)(product > UINT32_MAX ? UINT32_MAX : product), world);
    return 0;
}
