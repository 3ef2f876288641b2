// SPDX-License-Identifier: Apache-2.0
#include "worker/host/roles.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/str.h"

#include <string.h>

static int read_role(struct roles *r, const struct module *m, const struct json *v, struct role *ret, struct err *err)
{
    const struct json *init = json_get(v, "init");
    const char *class = json_str(json_get(v, "class"), &r->arena);
    ret->name = json_str(json_get(v, "name"), &r->arena);
    if (str_empty(ret->name) || strlen(ret->name) > MODULE_NAME_MAX || str_empty(class))
        return err_set(err, ERR_INVALID, "roles: each has a \"name\" of 1 to %d characters and a \"class\"",
                       MODULE_NAME_MAX);
    for (const struct role *other = r->at; other < ret; other++)
        if (str_eq(other->name, ret->name))
            return err_set(err, ERR_INVALID, "roles: %s is there twice", ret->name);
    ret->init = init ? arena_strndup(&r->arena, init->text, init->len) : NULL;
    ret->class = module_class(m, class, err);
    return ret->class ? 0 : err_wrap(err, "role %s", ret->name);
}

static int read_list(struct roles *r, const struct module *m, const char *text, struct err *err)
{
    static const char *const bulk[] = {"init", NULL}; // the constructor reads it
    struct json *list;
    if (json_parse(text, strlen(text), bulk, &r->arena, &list, err) < 0)
        return err_wrap(err, "roles");
    size_t n = json_count(list), i = 0;
    if (list->type != JSON_LIST || n < 1 || n > ROLES_MAX)
        return err_set(err, ERR_INVALID, "roles: must be a list of 1 to %d", ROLES_MAX);
    r->at = arena_array(&r->arena, n, sizeof *r->at);
    r->n = n;
    JSON_FOREACH(v, list) {
        int code = read_role(r, m, v, &r->at[i++], err);
        if (code < 0)
            return code;
    }
    return 0;
}

int roles_read(struct roles *r, const struct module *m, const struct cadre_worker *process, const char *class,
               const char *init, const char *json, struct err *err)
{
    *r = (struct roles){.n = 1};
    int code = 0;
    if (json) {
        code = read_list(r, m, json, err);
    } else {
        r->at = arena_new(&r->arena, struct role);
        r->at->init = init;
        r->at->class = module_class(m, class, err);
        code = r->at->class ? 0 : err->code;
    }
    for (size_t i = 0; i < r->n && code == 0; i++) {
        r->at[i].worker = *process;
        r->at[i].worker.published.before = i ? &r->at[i - 1].worker.published : NULL;
        r->at[i].roles = r;
    }
    return code;
}

void roles_done(struct roles *r)
{
    for (size_t i = 0; i < r->n && r->at; i++)
        published_done(&r->at[i].worker.published);
    arena_done(&r->arena);
    *r = (struct roles){0};
}

static void create(struct role *role);

static void finish(struct roles *r)
{
    if (r->why.code)
        r->config.on_created(r->config.ctx, &r->why);
    else
        r->config.on_destroyed(r->config.ctx);
}

static void destroy_last(struct roles *r)
{
    size_t n = r->n;
    while (n && !r->at[n - 1].instance)
        n--;
    if (n)
        instance_destroy(r->at[n - 1].instance);
    else
        finish(r);
}

static void on_destroyed(void *ctx)
{
    struct role *role = ctx;
    role->instance = NULL;
    destroy_last(role->roles);
}

static void on_created(void *ctx, const struct err *err)
{
    struct role *role = ctx;
    struct roles *r = role->roles;
    size_t next = (size_t)(role - r->at) + 1;
    if (err->code) {
        role->instance = NULL;
        r->why = *err;
        if (role->name)
            err_wrap(&r->why, "role %s", role->name);
        destroy_last(r);
    } else if (next < r->n) {
        create(&r->at[next]);
    } else {
        r->config.on_created(r->config.ctx, err);
    }
}

static void create(struct role *role)
{
    const struct instance_config config = {
        .executor = role->roles->config.executor,
        .worker = &role->worker,
        .class = role->class,
        .init = role->init,
        .on_created = on_created,
        .on_destroyed = on_destroyed,
        .ctx = role,
    };
    struct err err = ERR_INIT;
    role->instance = instance_new(&config, &err);
    if (!role->instance)
        on_created(role, &err);
}

void roles_create(struct roles *r, const struct roles_config *config)
{
    r->config = *config;
    create(&r->at[0]);
}

void roles_destroy(struct roles *r)
{
    destroy_last(r);
}

struct role *roles_find(const struct roles *r, const char *name, struct err *err)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(1024);
    bool none = !r->at[0].name;
    if (none && !name)
        return &r->at[0];
    for (size_t i = 0; i < r->n && name && !none; i++)
        if (str_eq(r->at[i].name, name))
            return &r->at[i];
    for (size_t i = 0; i < r->n && !none; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", r->at[i].name);
    if (none)
        err_set(err, ERR_NOT_FOUND, "there is no role '%s' here: this group has no roles", name);
    else if (name)
        err_set(err, ERR_NOT_FOUND, "there is no role '%s' here; there are: %s", name, buf_str(&names));
    else
        err_set(err, ERR_INVALID, "the group has roles, and the call names none; there are: %s", buf_str(&names));
    return NULL;
}

size_t roles_meshes(const struct roles *r, struct mesh out[MESHES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct published *p = &r->at[i].worker.published;
        for (size_t k = 0; k < p->n_meshes && n < MESHES_MAX; k++)
            out[n++] = p->meshes[k];
    }
    return n;
}
