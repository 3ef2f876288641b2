// SPDX-License-Identifier: Apache-2.0
#include "worker/host/published.h"

#include "common/base/str.h"
#include "common/wire/dispatch.h"
#include "common/wire/mode.h"
#include "worker/host/module.h"

#include <string.h>

const struct published_method *published_of(const struct published *p, const char *method)
{
    for (const struct published_method *m = p->methods; m; m = m->next)
        if (str_eq(m->name, method))
            return m;
    return NULL;
}

// The entry may be changed.
static struct published_method *entry_of(struct published *p, const cadre_method *m)
{
    struct published_method *at = (struct published_method *)published_of(p, m->name);
    if (!at) {
        at = arena_new(&p->memory, struct published_method);
        *at = (struct published_method){.name = m->name, .next = p->methods};
        p->methods = at;
    }
    return at;
}

static int parse(const char *text, const char *what, struct arena *a, struct json **ret, struct err *err)
{
    *ret = NULL;
    int r = text ? json_parse(text, strlen(text), NULL, a, ret, err) : 0;
    return r < 0 ? err_wrap(err, "`%s`", what) : 0;
}

int published_add_rule(struct published *p, const cadre_class *class, const char *method, const char *split,
                       const char *collect, struct err *err)
{
    struct dispatch_rule rule;
    struct json *s, *c = NULL;
    const cadre_method *m = module_method(class, method, err);
    if (!m)
        return err->code;
    if (mode_of(m->dispatch)->takes == MODE_NOTHING)
        return err_set(err, ERR_INVALID, "rule of %s(): only methods of CADRE_SPLIT and the 3D modes have one", method);
    struct published_method *entry = entry_of(p, m);
    if (entry->has_rule)
        return err_set(err, ERR_INVALID, "rule of %s(): it has one already", method);
    if (parse(split, "split", &p->memory, &s, err) < 0 || parse(collect, "collect", &p->memory, &c, err) < 0 ||
        dispatch_rule_read(s, c, &p->memory, &rule, err) < 0)
        return err_wrap(err, "rule of %s()", method);
    entry->has_rule = true;
    entry->split = arena_strdup(&p->memory, split);
    entry->collect = arena_strdup(&p->memory, collect);
    return 0;
}

int published_add_idempotent(struct published *p, const cadre_class *class, const char *method, struct err *err)
{
    const cadre_method *m = module_method(class, method, err);
    if (!m)
        return err_wrap(err, "idempotent");
    entry_of(p, m)->idempotent = true;
    return 0;
}

static const struct mesh *mesh_before(const struct published *p, const char *name)
{
    for (const struct published *b = p->before; b; b = b->before)
        for (size_t i = 0; i < b->n_meshes; i++)
            if (str_eq(b->meshes[i].name, name))
                return &b->meshes[i];
    return NULL;
}

int published_add_mesh(struct published *p, uint32_t world, const char *name, const char *const *dims,
                       const uint32_t *sizes, size_t n_dims, struct err *err)
{
    struct mesh_dim list[MESH_DIMS_MAX];
    struct mesh mesh = {name, list, n_dims};
    const struct mesh *known;
    size_t n = p->n_meshes;
    for (const struct published *b = p->before; b; b = b->before)
        n += b->n_meshes;
    if (n == MESHES_MAX)
        return err_set(err, ERR_INVALID, "more than %d meshes", MESHES_MAX);
    if (str_empty(name) || strlen(name) > MESH_NAME_MAX)
        return err_set(err, ERR_INVALID, "a mesh needs a name of 1 to %d characters", MESH_NAME_MAX);
    for (size_t i = 0; i < p->n_meshes; i++)
        if (str_eq(p->meshes[i].name, name))
            return err_set(err, ERR_INVALID, "mesh '%s' is published twice", name);
    for (size_t i = 0; i < n_dims && i < MESH_DIMS_MAX; i++)
        list[i] = (struct mesh_dim){dims[i], sizes[i]};
    int r = mesh_check(&mesh, world, err);
    if (r == 0 && (known = mesh_before(p, name)))
        return mesh_same(known, &mesh) ? 0
                                       : err_set(err, ERR_INVALID, "mesh '%s' is another one in another role", name);
    if (r == 0)
        p->meshes[p->n_meshes++] = *meshes_copy(&mesh, 1, &p->memory);
    return r;
}

static int check_group(const struct published *p, const char *name, unsigned limit, struct err *err)
{
    size_t n = p->n_groups;
    for (const struct published *b = p->before; b; b = b->before)
        n += b->n_groups;
    if (n == PUBLISHED_GROUPS_MAX)
        return err_set(err, ERR_INVALID, "more than %d concurrency groups", PUBLISHED_GROUPS_MAX);
    if (str_empty(name) || strlen(name) > MODULE_NAME_MAX)
        return err_set(err, ERR_INVALID, "a concurrency group needs a name of 1 to %d characters", MODULE_NAME_MAX);
    for (size_t i = 0; i < p->n_groups; i++)
        if (str_eq(p->groups[i].name, name))
            return err_set(err, ERR_INVALID, "concurrency group '%s' is there twice", name);
    if (limit < 1 || limit > EXECUTOR_THREADS_MAX)
        return err_set(err, ERR_INVALID, "concurrency group '%s' has a limit of %u; 1 to %d are possible", name, limit,
                       EXECUTOR_THREADS_MAX);
    return 0;
}

int published_add_group(struct published *p, const cadre_class *class, const char *name, unsigned limit,
                        const char *const *methods, size_t n_methods, struct err *err)
{
    if (check_group(p, name, limit, err) < 0)
        return err->code;
    struct published_group *g = &p->groups[p->n_groups++];
    *g = (struct published_group){arena_strdup(&p->memory, name), limit, 0};
    for (size_t i = 0; i < n_methods; i++) {
        const cadre_method *m = module_method(class, methods[i], err);
        if (!m)
            return err_wrap(err, "concurrency group '%s'", name);
        struct published_method *entry = entry_of(p, m);
        if (entry->group)
            return err_set(err, ERR_INVALID, "%s() is in concurrency group '%s' already", m->name, entry->group->name);
        entry->group = g;
    }
    return 0;
}

unsigned published_lane(const struct published *p, const char *method)
{
    const struct published_method *m = published_of(p, method);
    return m && m->group ? m->group->lane : 0;
}

void published_done(struct published *p)
{
    arena_done(&p->memory);
    *p = (struct published){0};
}
