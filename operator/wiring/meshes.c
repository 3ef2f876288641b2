// SPDX-License-Identifier: Apache-2.0
#include "operator/wiring/meshes.h"

struct mesh *meshes_of(const struct worker_spec *s, struct arena *a)
{
    struct mesh *meshes = arena_array(a, s->n_meshes, sizeof *meshes);
    for (size_t i = 0; i < s->n_meshes; i++) {
        const struct mesh_spec *m = &s->meshes[i];
        struct mesh_dim *dims = arena_array(a, m->n_dims, sizeof *dims);
        for (size_t k = 0; k < m->n_dims; k++)
            dims[k] = (struct mesh_dim){m->dims[k].name, (uint32_t)m->dims[k].size};
        meshes[i] = (struct mesh){m->name, dims, m->n_dims};
    }
    return meshes;
}
