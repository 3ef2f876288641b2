// SPDX-License-Identifier: Apache-2.0
// The objects of this process: one object of the module's class, or one for each of spec.worker.roles:
//
//   [{"name": "actor", "class": "Actor"}, {"name": "critic", "class": "Critic", "init": {"b": 10}}]
//
// They are created one after the other, in this order, and destroyed in the reverse order. All of them live on the
// executor's lane 0, so their methods run one at a time. The concurrency groups of all roles run beside it. Used from
// the loop's thread.
#pragma once

#include "worker/host/instance.h"
#include "worker/host/module.h"

enum { ROLES_MAX = 16 };

struct roles;

struct role {
    const char *name; // NULL = the only object of a group without roles
    const cadre_class *class;
    const char *init;           // JSON; NULL = {}
    struct cadre_worker worker; // the argument of its constructor, with what the constructor has published
    struct instance *instance;  // NULL = not created yet, or destroyed
    struct roles *roles;
};

struct roles_config {
    struct method_executor *executor;
    // Called once, from the loop. Code 0: calls may come. Another code: the message is from a constructor, and no
    // object is left.
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

// Reads what to create: `json` is a list as above. If it is NULL, `class` (NULL = the only one) and `init` say it. The
// strings are borrowed. `process` is copied for each role. ERR_INVALID, ERR_NOT_FOUND. Call roles_done() in any case.
int roles_read(struct roles *r, const struct module *m, const struct cadre_worker *process, const char *class,
               const char *init, const char *json, struct err *err);
void roles_done(struct roles *r);

void roles_create(struct roles *r, const struct roles_config *config);
void roles_destroy(struct roles *r); // once, after on_created; submit no call afterwards

// Returns the meshes that the roles have published; borrows them.
size_t roles_meshes(const struct roles *r, struct mesh out[MESHES_MAX]);

// Finds the role. name is NULL if the call names no role. Returns NULL with ERR_INVALID, or with ERR_NOT_FOUND and the
// existing names.
struct role *roles_find(const struct roles *r, const char *name, struct err *err);
