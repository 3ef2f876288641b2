// SPDX-License-Identifier: Apache-2.0
// What a class publishes while it is constructed, besides its table of methods: rules of methods, meshes, concurrency
// groups.
#pragma once

#include "common/base/arena.h"
#include "common/wire/grid.h"
#include "sdk/c/include/cadre/worker.h"
#include "worker/host/method_executor.h"

struct published_rule {
    const char *method;
    const char *split, *collect; // JSON; NULL = none
    struct published_rule *next;
};

struct published_group {
    const char *name;
    unsigned limit, lane; // lane: once the constructor has returned
};

struct published_name { // of a method that may run again
    const char *method;
    struct published_name *next;
};

struct published_place { // of a method
    const char *method;
    const struct published_group *group;
    struct published_place *next;
};

enum { PUBLISHED_GROUPS_MAX = EXECUTOR_LANES_MAX - 1 };

struct published {
    struct published_rule *rules;
    struct published_name *idempotent;
    struct grid meshes[GRIDS_MAX];
    size_t n_meshes;
    struct published_group groups[PUBLISHED_GROUPS_MAX];
    size_t n_groups;
    struct published_place *places;
    const struct published *before; // of the roles of this process that were made before; NULL = none
    struct arena memory;            // of all of it but those
};

// ERR_INVALID where the method takes none or has one, or where the rule is wrong.
int published_add_rule(struct published *p, const cadre_class *class, const char *method, const char *split,
                       const char *collect, struct err *err);
int published_add_idempotent(struct published *p, const cadre_class *class, const char *method, struct err *err);
bool published_idempotent(const struct published *p, const char *method);
// A mesh that an earlier role has published as well is not kept twice.
int published_add_mesh(struct published *p, uint32_t world, const char *name, const char *const *dims,
                       const uint32_t *sizes, size_t n_dims, struct err *err);
int published_add_group(struct published *p, const cadre_class *class, const char *name, unsigned limit,
                        const char *const *methods, size_t n_methods, struct err *err);
const struct published_group *published_group_of(const struct published *p, const char *method); // NULL = in none
unsigned published_lane(const struct published *p, const char *method);                          // 0 = in no group
const struct published_rule *published_rule(const struct published *p, const char *method);      // or NULL
void published_done(struct published *p);
