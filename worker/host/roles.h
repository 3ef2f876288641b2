// SPDX-License-Identifier: Apache-2.0
// The objects of this process: one of the module's class, or one for each of spec.worker.roles,
//
//   [{"name": "actor", "class": "Actor"}, {"name": "critic", "class": "Critic", "init": {"b": 10}}]
//
// They are made one after the other, in this order, and destroyed the other way round. All of them live on the
// executor's lane 0, so that their methods run one at a time; concurrency groups run beside, whosever they are. Used
// from the loop's thread.
#pragma once

#include "worker/host/instance.h"
#include "worker/host/module.h"

enum { ROLES_MAX = 16 };

struct roles;

struct role {
    const char *name; // NULL: the only one of a group without roles
    const cadre_class *class;
    const char *init;           // JSON; NULL = {}
    struct cadre_worker worker; // what its constructor gets, and has published
    struct instance *instance;  // NULL: not made yet, or destroyed
    struct roles *roles;
};

struct roles_config {
    struct executor *executor;
    // Once, from the loop, with code 0 when calls may come; else with what a constructor said. Then none is left.
    void (*on_created)(void *ctx, const struct err *err);
    void (*on_destroyed)(void *ctx); // after roles_destroy(), from the loop
    void *ctx;
};

struct roles {
    struct role *at;
    size_t n;
    // private
    struct roles_config config;
    struct arena arena;
    struct err why;
};

// What is to be made: `json` is a list as above, or NULL, then `class` (NULL = the only one) and `init` say it. The
// strings are borrowed, `process` is copied for each role. ERR_INVALID, ERR_NOT_FOUND; roles_done() either way.
int roles_read(struct roles *r, const struct module *m, const struct cadre_worker *process, const char *class,
               const char *init, const char *json, struct err *err);
void roles_done(struct roles *r);

void roles_create(struct roles *r, const struct roles_config *config);
void roles_destroy(struct roles *r); // once, after on_created; no call may be submitted after

// What all of them have published; borrows.
size_t roles_meshes(const struct roles *r, struct grid out[GRIDS_MAX]);

// NULL as the name: of a call that says none. NULL and ERR_INVALID, ERR_NOT_FOUND with the names that there are.
struct role *roles_find(const struct roles *r, const char *name, struct err *err);
