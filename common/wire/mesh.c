// SPDX-License-Identifier: Apache-2.0
#include "common/wire/mesh.h"

#include "common/base/str.h"

#include <inttypes.h>
#include <string.h>

int mesh_find(const struct mesh *mesh, const char *dim)
{
    for (size_t i = 0; i < mesh->n_dims; i++)
        if (str_eq(mesh->dims[i].name, dim))
            return (int)i;
    return -1;
}

uint32_t mesh_size(const struct mesh *mesh, const char *dim)
{
    int i = mesh_find(mesh, dim);
    return i < 0 ? 1 : mesh->dims[i].size;
}

uint32_t mesh_at(const struct mesh *mesh, uint32_t rank, int i)
{
    if (i < 0)
        return 0;
    for (size_t k = mesh->n_dims; k-- > (size_t)i + 1;)
        rank /= mesh->dims[k].size;
    return rank % mesh->dims[i].size;
}

int mesh_check(const struct mesh *mesh, uint32_t world, struct err *err)
{
    uint64_t product = 1;
    if (!mesh->n_dims || mesh->n_dims > MESH_DIMS_MAX)
        return err_set(err, ERR_INVALID, "mesh '%s' has %zu dimensions; 1 to %d are allowed", mesh->name, mesh->n_dims,
                       MESH_DIMS_MAX);
    for (size_t i = 0; i < mesh->n_dims; i++) {
        if (str_empty(mesh->dims[i].name) || mesh_find(mesh, mesh->dims[i].name) != (int)i)
            return err_set(err, ERR_INVALID, "mesh '%s': the name of dimension %zu is missing or used twice",
                           mesh->name, i);
        product *= mesh->dims[i].size;
        if (product > UINT32_MAX)
            break;
    }
    if (product != world)
        return err_set(err, ERR_INVALID, "mesh '%s' is for %s%llu ranks, the group has %u", mesh->name,
                       product > UINT32_MAX ? "more than " : "",
                       (unsigned long long)(product > UINT32_MAX ? UINT32_MAX : product), world);
    return 0;
}

bool mesh_same(const struct mesh *a, const struct mesh *b)
{
    bool same = str_eq(a->name, b->name) && a->n_dims == b->n_dims;
    for (size_t i = 0; same && i < a->n_dims; i++)
        same = str_eq(a->dims[i].name, b->dims[i].name) && a->dims[i].size == b->dims[i].size;
    return same;
}

struct mesh *meshes_copy(const struct mesh *meshes, size_t n, struct arena *a)
{
    struct mesh *copy = arena_array(a, n, sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        struct mesh_dim *dims = arena_array(a, meshes[i].n_dims, sizeof *dims);
        for (size_t k = 0; k < meshes[i].n_dims; k++)
            dims[k] = (struct mesh_dim){arena_strdup(a, meshes[i].dims[k].name), meshes[i].dims[k].size};
        copy[i] = (struct mesh){arena_strdup(a, meshes[i].name), dims, meshes[i].n_dims};
    }
    return copy;
}

static const char *read_name(const struct json *v, struct arena *a)
{
    const char *name = json_str(json_get(v, "name"), a);
    return !str_empty(name) && strlen(name) <= MESH_NAME_MAX ? name : NULL;
}

static bool read_mesh(const struct json *v, struct arena *a, struct mesh *ret)
{
    const struct json *list = json_get(v, "dims");
    struct mesh_dim *dims = arena_array(a, MESH_DIMS_MAX, sizeof *dims);
    ret->name = read_name(v, a);
    ret->dims = dims;
    if (!ret->name || !list || list->type != JSON_LIST || json_count(list) > MESH_DIMS_MAX)
        return false;
    JSON_FOREACH(item, list) {
        int64_t size;
        struct mesh_dim *dim = &dims[ret->n_dims++];
        dim->name = read_name(item, a);
        if (!dim->name || !json_i64(json_get(item, "size"), &size) || size < 1 || size > UINT32_MAX)
            return false;
        dim->size = (uint32_t)size;
    }
    return true;
}

int meshes_read(const struct json *list, struct arena *a, struct mesh **ret, size_t *ret_n, struct err *err)
{
    size_t n = 0;
    struct mesh *meshes = arena_array(a, MESHES_MAX, sizeof *meshes);
    if (list->type != JSON_LIST || json_count(list) > MESHES_MAX)
        return err_set(err, ERR_INVALID, "meshes must be a list of at most %d", MESHES_MAX);
    JSON_FOREACH(item, list)
        if (!read_mesh(item, a, &meshes[n++]))
            return err_set(err, ERR_INVALID,
                           "mesh %zu must have a name and `dims`, a list of at most %d with name and size", n - 1,
                           MESH_DIMS_MAX);
    *ret = meshes;
    *ret_n = n;
    return 0;
}

void meshes_write(struct json_writer *w, const char *key, const struct mesh *meshes, size_t n)
{
    writer_list(w, key);
    for (size_t i = 0; i < n; i++) {
        writer_object(w, NULL);
        writer_str(w, "name", meshes[i].name);
        writer_list(w, "dims");
        for (size_t k = 0; k < meshes[i].n_dims; k++)
            writer_print(w, NULL, "{'name':%s,'size':%" PRId64 "}", meshes[i].dims[k].name,
                         (int64_t)meshes[i].dims[k].size);
        writer_list_end(w);
        writer_object_end(w);
    }
    writer_list_end(w);
}
