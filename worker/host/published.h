// SPDX-License-Identifier: Apache-2.0
// The rules of methods, the meshes and the concurrency groups that a class publishes in its constructor, besides its
// table of methods.
#pragma once

#include "common/base/arena.h"
#include "common/wire/mesh.h"
#include "sdk/c/include/cadre/worker.h"
#include "worker/host/method_executor.h"

struct published_group {
    const char *name;
    unsigned limit, lane; // lane: set when the constructor has returned
};

struct published_method {
    const char *name;
    bool has_rule;
    const char *split, *collect;         // JSON; NULL = none
    bool idempotent;                     // a repeated run is harmless
    const struct published_group *group; // NULL = no group
    struct published_method *next;
};

enum { PUBLISHED_GROUPS_MAX = EXECUTOR_LANES_MAX - 1 };

struct published {
    struct published_method *methods; // all methods with something published
    struct mesh meshes[MESHES_MAX];
    size_t n_meshes;
    struct published_group groups[PUBLISHED_GROUPS_MAX];
    size_t n_groups;
    const struct published *before; // what the roles before this one have published; NULL = none
    struct arena memory;            // holds everything, except `before`
};

// ERR_INVALID: the method takes no rule or has one already, or the rule is wrong.
int published_add_rule(struct published *p, const cadre_class *class, const char *method, const char *split,
                       const char *collect, struct err *err);
int published_add_idempotent(struct published *p, const cadre_class *class, const char *method, struct err *err);
// If an earlier role has published the same mesh, it is not kept twice.
int published_add_mesh(struct published *p, uint32_t world, const char *name, const char *const *dims,
                       const uint32_t *sizes, size_t n_dims, struct err *err);
int published_add_group(struct published *p, const cadre_class *class, const char *name, unsigned limit,
                        const char *const *methods, size_t n_methods, struct err *err);
const struct published_method *published_of(const struct published *p, const char *method); // NULL = nothing
unsigned published_lane(const struct published *p, const char *method);                     // 0 = no group
void published_done(struct published *p);
