// SPDX-License-Identifier: Apache-2.0
// A mesh: the ranks of a group as a grid with named dimensions, row-major, the last one fastest. Borrows everything. As
// JSON: {"name": "train", "dims": [{"name": "pp", "size": 2}, {"name": "dp", "size": 2}]}
#pragma once

#include "common/base/json.h"
#include "common/base/json_writer.h"

#include <stddef.h>
#include <stdint.h>

enum { MESH_DIMS_MAX = 8, MESHES_MAX = 16, MESH_NAME_MAX = 63 };

struct mesh_dim {
    const char *name;
    uint32_t size;
};

struct mesh {
    const char *name;
    const struct mesh_dim *dims;
    size_t n_dims;
};

// ERR_INVALID if a name is missing or occurs twice, or if the product of the sizes is not `world`.
int mesh_check(const struct mesh *mesh, uint32_t world, struct err *err);
int mesh_find(const struct mesh *mesh, const char *dim);         // its index, -1 = there is none
uint32_t mesh_size(const struct mesh *mesh, const char *dim);    // 1 if there is none
uint32_t mesh_at(const struct mesh *mesh, uint32_t rank, int i); // coordinate in dimension i; 0 for -1
bool mesh_same(const struct mesh *a, const struct mesh *b);

struct mesh *meshes_copy(const struct mesh *meshes, size_t n, struct arena *a);
// A list of them, copied into the arena. ERR_INVALID; the sizes are for mesh_check().
int meshes_read(const struct json *list, struct arena *a, struct mesh **ret, size_t *ret_n, struct err *err);
void meshes_write(struct json_writer *w, const char *key, const struct mesh *meshes, size_t n);
