// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/member.h"

#include "common/base/json.h"
#include "common/base/str.h"
#include "common/wire/archive_piece.h"
#include "common/wire/call_head.h"
#include "common/wire/mode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct member_method *)a)->name, ((const struct member_method *)b)->name);
}

static const char *text_of(const struct json *v, struct arena *a)
{
    return v ? arena_strndup(a, v->text, v->len) : NULL;
}

static int read_rule(const struct json *v, struct arena *a, struct member_method *ret, struct err *err)
{
    const struct json *split = json_get(v, "split"), *collect = json_get(v, "collect");
    struct dispatch_rule *rule;
    if (!split && !collect)
        return 0;
    if (mode_of(ret->dispatch)->takes == MODE_NOTHING)
        return err_set(err, ERR_INVALID, "HELLO: method %s is %s; `split` and `collect` go with SPLIT and the 3D modes",
                       ret->name, mode_dispatch_name(ret->dispatch));
    rule = arena_new(a, struct dispatch_rule);
    ret->rule = rule;
    ret->split = text_of(split, a);
    ret->collect = text_of(collect, a);
    int r = dispatch_rule_read(split, collect, a, rule, err);
    return r < 0 ? err_wrap(err, "HELLO: method %s", ret->name) : 0;
}

// Methods of one role with the same concurrency group have one lane.
static int read_lane(struct member *m, const struct json *v, const char *role, struct member_method *ret,
                     struct err *err)
{
    const char *group = json_str(json_get(v, "group"), &m->arena);
    int64_t limit;
    if (!v)
        return 0;
    if (str_empty(group) || !json_i64(json_get(v, "limit"), &limit) || limit < 1 || limit > UINT32_MAX)
        return err_set(err, ERR_INVALID, "HELLO: \"concurrency\" of method %s needs a \"group\" and a \"limit\" from 1",
                       ret->name);
    size_t i = 1;
    while (i < m->n_lanes && !(str_eq(m->lanes[i].group, group) && str_eq(m->lanes[i].role, role)))
        i++;
    if (i == MEMBER_LANES_MAX)
        return err_set(err, ERR_INVALID, "HELLO: more than %d concurrency groups", MEMBER_LANES_MAX - 1);
    if (i == m->n_lanes)
        m->lanes[m->n_lanes++] = (struct member_lane){role, group, (uint32_t)limit, 0};
    ret->lane = (uint8_t)i;
    return 0;
}

static int read_method(struct member *m, const struct json *v, const char *role, struct member_method *ret,
                       struct err *err)
{
    struct arena *a = &m->arena;
    const char *name = json_str(json_get(v, "name"), a), *dispatch = json_str(json_get(v, "dispatch"), a),
               *execute = json_str(json_get(v, "execute"), a);
    if (str_empty(name) || strlen(name) > CALL_HEAD_METHOD_MAX)
        return err_set(err, ERR_INVALID, "HELLO: a method needs a \"name\" of 1 to %d characters",
                       CALL_HEAD_METHOD_MAX);
    *ret = (struct member_method){.name = name, .dispatch = mode_dispatch(dispatch), .execute = mode_execute(execute)};
    if (!ret->dispatch || !ret->execute)
        return err_set(err, ERR_INVALID, "HELLO: method %s has dispatch mode %s and execute mode %s", name,
                       dispatch ? dispatch : "none", execute ? execute : "none");
    ret->idempotent = json_is_true(json_get(v, "idempotent"));
    int r = read_rule(v, a, ret, err);
    return r < 0 ? r : read_lane(m, json_get(v, "concurrency"), role ? role : "", ret, err);
}

static int read_methods(struct member *m, struct member_role *ret, const struct json *list, struct err *err)
{
    size_t n = json_count(list);
    if (!list || list->type != JSON_LIST || n > MEMBER_METHODS_MAX)
        return err_set(err, ERR_INVALID, "HELLO: \"methods\" must be a list of at most %d", MEMBER_METHODS_MAX);
    ret->methods = arena_array(&m->arena, n, sizeof *ret->methods);
    JSON_FOREACH(v, list) {
        int r = read_method(m, v, ret->name, &ret->methods[ret->n_methods++], err);
        if (r < 0)
            return r;
    }
    qsort(ret->methods, n, sizeof *ret->methods, compare);
    for (size_t i = 1; i < n; i++)
        if (str_eq(ret->methods[i - 1].name, ret->methods[i].name))
            return err_set(err, ERR_INVALID, "HELLO: method %s is declared twice", ret->methods[i].name);
    return 0;
}

static int read_role(struct member *m, const struct json *v, struct err *err)
{
    struct member_role *role = &m->roles[m->n_roles];
    const char *name = json_str(json_get(v, "name"), &m->arena);
    if (str_empty(name) || strlen(name) > CALL_HEAD_ROLE_MAX || member_role(m, name))
        return err_set(err, ERR_INVALID, "HELLO: a role needs a \"name\" of its own of 1 to %d characters",
                       CALL_HEAD_ROLE_MAX);
    role->name = name;
    role->class = json_str(json_get(v, "class"), &m->arena);
    m->n_roles++;
    int r = read_methods(m, role, json_get(v, "methods"), err);
    return r < 0 ? err_wrap(err, "role %s", name) : 0;
}

static int read_roles(struct member *m, const struct json *root, struct err *err)
{
    const struct json *list = json_get(root, "roles");
    size_t n = json_count(list);
    int r = 0;
    if (!list) {
        m->roles = arena_new(&m->arena, struct member_role);
        m->n_roles = 1;
        m->roles->class = json_str(json_get(root, "class"), &m->arena);
        return read_methods(m, m->roles, json_get(root, "methods"), err);
    }
    if (list->type != JSON_LIST || n < 1 || n > MEMBER_ROLES_MAX)
        return err_set(err, ERR_INVALID, "HELLO: \"roles\" must be a list of 1 to %d", MEMBER_ROLES_MAX);
    m->roles = arena_array(&m->arena, n, sizeof *m->roles);
    JSON_FOREACH(v, list)
        if (r == 0)
            r = read_role(m, v, err);
    return r;
}

static int read_awaits(struct member *m, const struct json *root, struct err *err)
{
    const struct json *awaits = json_get(root, "awaits");
    m->awaits = json_str(awaits, &m->arena);
    if (awaits && !archive_sha256(m->awaits))
        return err_set(err, ERR_INVALID, "HELLO: \"awaits\" is not the SHA-256 of an archive");
    return 0;
}

int member_new(const struct member_identity *id, const char *hello, size_t len, struct member **ret, struct err *err)
{
    struct member *m = xcalloc(1, sizeof *m);
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root = NULL;
    *m = (struct member){.attempt = id->attempt,
                         .rank = id->rank,
                         .lanes = {[0] = {.limit = 1}, [MEMBER_LANE_NONE] = {.limit = UINT32_MAX}},
                         .n_lanes = 1};
    list_init(&m->peer.changed);
    list_init(&m->pending);
    list_init(&m->leaving);
    list_init(&m->failing);
    list_init(&m->of_group);
    list_init(&m->recount);
    m->pod = arena_strdup(&m->arena, id->pod);
    m->node = arena_strdup(&m->arena, id->node);
    m->address = arena_strdup(&m->arena, id->address);
    m->secret = arena_strdup(&m->arena, id->secret);
    int r = json_parse(hello, len, NULL, &a, &root, err);
    if (r < 0)
        err_wrap(err, "HELLO");
    else
        r = read_roles(m, root, err);
    const struct json *meshes = r < 0 ? NULL : json_get(root, "meshes");
    if (meshes && (r = meshes_read(meshes, &m->arena, &m->meshes, &m->n_meshes, err)) < 0)
        err_wrap(err, "HELLO");
    if (r == 0)
        r = read_awaits(m, root, err);
    int64_t port = 0;
    if (r == 0 && json_get(root, "objectPort") && json_i64(json_get(root, "objectPort"), &port) && port > 0 &&
        port <= UINT16_MAX)
        m->object_port = (uint16_t)port;
    m->takes_code = r == 0 && json_is_true(json_get(root, "code"));
    if (r < 0) {
        member_free(m);
        return r;
    }
    *ret = m;
    return 0;
}

void member_free(struct member *m)
{
    assert(m->n_pending == 0);
    list_remove(&m->leaving);
    list_remove(&m->of_group);
    list_remove(&m->recount);
    peer_done(&m->peer);
    arena_done(&m->arena);
    free(m);
}

const struct member_role *member_role(const struct member *m, const char *name)
{
    for (size_t i = 0; i < m->n_roles; i++)
        if (str_empty(name) ? !m->roles[i].name : str_eq(m->roles[i].name, name))
            return &m->roles[i];
    return NULL;
}

const struct member_method *member_method(const struct member_role *r, const char *name)
{
    const struct member_method key = {.name = name};
    return r->n_methods ? bsearch(&key, r->methods, r->n_methods, sizeof key, compare) : NULL;
}

const struct member_method *member_method_of(const struct member *m, const char *role, const char *method)
{
    const struct member_role *r = member_role(m, role);
    return r ? member_method(r, method) : NULL;
}

bool member_at(const struct member *m, char *out, size_t size)
{
    const char *address = str_empty(m->address) ? "127.0.0.1" : m->address;
    bool v6 = strchr(address, ':') != NULL;
    if (!m->object_port)
        return false;
    return (size_t)snprintf(out, size, "%s%s%s:%u", v6 ? "[" : "", address, v6 ? "]" : "", m->object_port) < size;
}

struct member_lane *member_lane(struct member *m, uint8_t lane)
{
    return &m->lanes[lane < m->n_lanes || lane == MEMBER_LANE_NONE ? lane : 0];
}
