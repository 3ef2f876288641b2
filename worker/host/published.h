// SPDX-License-Identifier: Apache-2.0
// What a class tells of itself while it is created, besides its table of methods: rules of methods, meshes.
#ifndef CADRE_HOST_PUBLISHED_H
#define CADRE_HOST_PUBLISHED_H

#include "common/base/arena.h"
#include "common/wire/grid.h"
#include "sdk/c/include/cadre/worker.h"

struct published_rule {
    const char *method;
    const char *split, *collect; // JSON; NULL = none
    struct published_rule *next;
};

struct published {
    struct published_rule *rules;
    struct grid meshes[GRIDS_MAX];
    size_t n_meshes;
    struct arena memory; // of all of it
};

// ERR_INVALID where the method takes none or has one, or where the rule is wrong.
int published_add_rule(struct published *p, const cadre_class *class, const char *method, const char *split,
                       const char *collect, struct err *err);
int published_add_mesh(struct published *p, uint32_t world, const char *name, const char *const *dims,
                       const uint32_t *sizes, size_t n_dims, struct err *err);
const struct published_rule *published_rule(const struct published *p, const char *method); // or NULL
void published_done(struct published *p);

#endif
