// SPDX-License-Identifier: Apache-2.0
#include "common/wire/grid.h"

#include "common/base/str.h"

#include <inttypes.h>
#include <string.h>

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
            return err_set(err, ERR_INVALID, "mesh '%s': the name of dimension %zu is missing or used twice", g->name,
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

bool grid_same(const struct grid *a, const struct grid *b)
{
    bool same = str_eq(a->name, b->name) && a->n_dims == b->n_dims;
    for (size_t i = 0; same && i < a->n_dims; i++)
        same = str_eq(a->dims[i].name, b->dims[i].name) && a->dims[i].size == b->dims[i].size;
    return same;
}

struct grid *grids_copy(const struct grid *grids, size_t n, struct arena *a)
{
    struct grid *copy = arena_array(a, n, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        struct grid_dim *dims = arena_array(a, grids[i].n_dims, sizeof *dims);
        for (size_t k = 0; k < grids[i].n_dims; k++)
            dims[k] = (struct grid_dim){arena_strdup(a, grids[i].dims[k].name), grids[i].dims[k].size};
        copy[i] = (struct grid){arena_strdup(a, grids[i].name), dims, grids[i].n_dims};
    }
    return copy;
}

static const char *read_name(const struct json *v, struct arena *a)
{
    const char *name = json_str(json_get(v, "name"), a);
    return !str_empty(name) && strlen(name) <= GRID_NAME_MAX ? name : NULL;
}

static bool read_grid(const struct json *v, struct arena *a, struct grid *ret)
{
    const struct json *list = json_get(v, "dims");
    struct grid_dim *dims = arena_array(a, GRID_DIMS_MAX, sizeof *dims);
    ret->name = read_name(v, a);
    ret->dims = dims;
    if (!ret->name || !list || list->type != JSON_LIST || json_count(list) > GRID_DIMS_MAX)
        return false;
    JSON_FOREACH(item, list) {
        int64_t size;
        struct grid_dim *dim = &dims[ret->n_dims++];
        dim->name = read_name(item, a);
        if (!dim->name || !json_i64(json_get(item, "size"), &size) || size < 1 || size > UINT32_MAX)
            return false;
        dim->size = (uint32_t)size;
    }
    return true;
}

int grids_read(const struct json *list, struct arena *a, struct grid **ret, size_t *ret_n, struct err *err)
{
    size_t n = 0;
    struct grid *grids = arena_array(a, GRIDS_MAX, sizeof *grids);
    if (list->type != JSON_LIST || json_count(list) > GRIDS_MAX)
        return err_set(err, ERR_INVALID, "meshes must be a list of at most %d", GRIDS_MAX);
    JSON_FOREACH(item, list)
        if (!read_grid(item, a, &grids[n++]))
            return err_set(err, ERR_INVALID,
                           "mesh %zu must have a name and `dims`, a list of at most %d with name and size", n - 1,
                           GRID_DIMS_MAX);
    *ret = grids;
    *ret_n = n;
    return 0;
}

void grids_write(struct json_writer *w, const char *key, const struct grid *grids, size_t n)
{
    writer_list(w, key);
    for (size_t i = 0; i < n; i++) {
        writer_object(w, NULL);
        writer_str(w, "name", grids[i].name);
        writer_list(w, "dims");
        for (size_t k = 0; k < grids[i].n_dims; k++)
            writer_print(w, NULL, "{'name':%s,'size':%" PRId64 "}", grids[i].dims[k].name,
                         (int64_t)grids[i].dims[k].size);
        writer_list_end(w);
        writer_object_end(w);
    }
    writer_list_end(w);
}
