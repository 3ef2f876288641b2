// SPDX-License-Identifier: Apache-2.0
// A mesh: the ranks of a group as a grid with named dimensions, row-major, the last one fastest. Borrows everything. As
// JSON: {"name": "train", "dims": [{"name": "pp", "size": 2}, {"name": "dp", "size": 2}]}
#pragma once

#include "common/base/json.h"
#include "common/base/json_writer.h"

#include <stddef.h>
#include <stdint.h>

enum { GRID_DIMS_MAX = 8, GRIDS_MAX = 16, GRID_NAME_MAX = 63 };

struct grid_dim {
    const char *name;
    uint32_t size;
};

struct grid {
    const char *name;
    const struct grid_dim *dims;
    size_t n_dims;
};

// ERR_INVALID if a name is missing or occurs twice, or if the product of the sizes is not `world`.
int grid_check(const struct grid *g, uint32_t world, struct err *err);
int grid_find(const struct grid *g, const char *dim);         // its index, -1 = there is none
uint32_t grid_size(const struct grid *g, const char *dim);    // 1 if there is none
uint32_t grid_at(const struct grid *g, uint32_t rank, int i); // coordinate in dimension i; 0 for -1
bool grid_same(const struct grid *a, const struct grid *b);

struct grid *grids_copy(const struct grid *grids, size_t n, struct arena *a);
// A list of them, copied into the arena. ERR_INVALID; the sizes are for grid_check().
int grids_read(const struct json *list, struct arena *a, struct grid **ret, size_t *ret_n, struct err *err);
void grids_write(struct json_writer *w, const char *key, const struct grid *grids, size_t n);
