// SPDX-License-Identifier: Apache-2.0
// A mesh: the ranks of a group as a grid with named dimensions, row-major, the last one fastest. Borrows everything.
#ifndef CADRE_WIRE_GRID_H
#define CADRE_WIRE_GRID_H

#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { GRID_DIMS_MAX = 8 };

struct grid_dim {
    const char *name;
    uint32_t size;
};

struct grid {
    const char *name;
    const struct grid_dim *dims;
    size_t n_dims;
};

// ERR_INVALID where names are missing or there twice, or where the sizes do not multiply to `world`.
int grid_check(const struct grid *g, uint32_t world, struct err *err);
int grid_find(const struct grid *g, const char *dim);         // its index, -1 = there is none
uint32_t grid_size(const struct grid *g, const char *dim);    // 1 where there is none
uint32_t grid_at(const struct grid *g, uint32_t rank, int i); // coordinate in dimension i; 0 for -1

#endif
