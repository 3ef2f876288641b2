// SPDX-License-Identifier: Apache-2.0
// What a class publishes while it is constructed, besides its table of methods: rules of methods, meshes, concurrency
// groups.
#pragma once

#include "common/base/arena.h"
#include "common/wire/grid.h"
#include "sdk/c/include/cadre/worker.h"
#include "worker/host/method_executor.h"

struct published_group {
    const char *name;
    unsigned limit, lane; // lane: once the constructor has returned
};

struct published_method {
    const char *name;
    bool has_rule;
    const char *split, *collect;         // JSON; NULL = none
    bool idempotent;                     // it may run again
    const struct published_group *group; // NULL = in none
    struct published_method *next;
};

enum { PUBLISHED_GROUPS_MAX = EXECUTOR_LANES_MAX - 1 };

struct published {
    struct published_method *methods; // those that something is published about
    struct grid meshes[GRIDS_MAX];
    size_t n_meshes;
    struct published_group groups[PUBLISHED_GROUPS_MAX];
    size_t n_groups;
    const struct published *before; // of the roles of this process that were made before; NULL = none
    struct arena memory;            // of all of it but those
};

// ERR_INVALID where the method takes none or has one, or where the rule is wrong.
int published_add_rule(struct published *p, const cadre_class *class, const char *method, const char *split,
                       const char *collect, struct err *err);
int published_add_idempotent(struct published *p, const cadre_class *class, const char *method, struct err *err);
// A mesh that an earlier role has published as well is not kept twice.
int published_add_mesh(struct published *p, uint32_t world, const char *name, const char *const *dims,
                       const uint32_t *sizes, size_t n_dims, struct err *err);
int published_add_group(struct published *p, const cadre_class *class, const char *name, unsigned limit,
                        const char *const *methods, size_t n_methods, struct err *err);
const struct published_method *published_of(const struct published *p, const char *method); // NULL = nothing
unsigned published_lane(const struct published *p, const char *method);                     // 0 = in no group
void published_done(struct published *p);
