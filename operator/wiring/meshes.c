// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/meshes.h"

struct grid *meshes_of(const struct worker_spec *s, struct arena *a)
{
    struct grid *grids = arena_array(a, s->n_meshes, sizeof *grids);
    for (size_t i = 0; i < s->n_meshes; i++) {
        const struct mesh *m = &s->meshes[i];
        struct grid_dim *dims = arena_array(a, m->n_dims, sizeof *dims);
        for (size_t k = 0; k < m->n_dims; k++)
            dims[k] = (struct grid_dim){m->dims[k].name, (uint32_t)m->dims[k].size};
        grids[i] = (struct grid){m->name, dims, m->n_dims};
    }
    return grids;
}
