// SPDX-License-Identifier: Apache-2.0
#include "common/wire/dispatch_rule.h"

#include "common/base/mem.h"
#include "common/wire/mesh.h"

static int wrong(const char *member, const char *what, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s must be %s", member, what);
}

static int read_name(const struct json *v, const char *member, struct arena *a, const char **ret, struct err *err)
{
    *ret = json_str(v, a);
    return *ret ? 0 : wrong(member, "the name of a mesh", err);
}

static int read_dims(const struct json *v, struct arena *a, struct dispatch_rule *ret, struct err *err)
{
    if (v->type != JSON_LIST || json_count(v) > MESH_DIMS_MAX)
        return wrong("split.dims", "a list of dimensions of the mesh", err);
    ret->dims = arena_array(a, json_count(v), sizeof *ret->dims);
    JSON_FOREACH(item, v)
        if (!(ret->dims[ret->n_dims++] = json_str(item, a)))
            return wrong("split.dims", "a list of names", err);
    return 0;
}

static int read_numbers(const struct json *v, const char *member, struct arena *a, const uint32_t **ret, size_t *ret_n,
                        struct err *err)
{
    size_t n = 0;
    uint32_t *numbers = arena_array(a, json_count(v), sizeof *numbers);
    if (v->type != JSON_LIST || !v->child)
        return wrong(member, "a list of numbers that is not empty", err);
    JSON_FOREACH(item, v) {
        int64_t number;
        if (!json_i64(item, &number) || number < 0 || number >= UINT32_MAX)
            return wrong(member, "a list of numbers from 0", err);
        numbers[n++] = (uint32_t)number;
    }
    *ret = numbers;
    *ret_n = n;
    return 0;
}

static int read_at(const struct json *v, struct arena *a, struct dispatch_rule *ret, struct err *err)
{
    if (v->type != JSON_OBJECT || json_count(v) > MESH_DIMS_MAX)
        return wrong("collect.at", "an object with a coordinate for each of some dimensions of the mesh", err);
    struct dispatch_at *at = arena_array(a, json_count(v), sizeof *at);
    JSON_FOREACH(item, v) {
        int64_t index = json_str_is(item, "last") ? -1 : 0;
        bool named = index < 0 || json_str_is(item, "first");
        if (json_str_is(item, "all"))
            continue;
        if (!named && !json_i64(item, &index))
            return wrong("collect.at", "an object of coordinates: numbers, -1 or \"last\", \"first\", \"all\"", err);
        at[ret->n_at++] = (struct dispatch_at){arena_strndup(a, item->key, item->key_len), index};
    }
    ret->at = at;
    return 0;
}

static int unknown(const char *where, const struct json *member, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s has no member '%.*s'", where, (int)MIN(member->key_len, 64u), member->key);
}

static bool read_bool(const struct json *v, bool *ret)
{
    *ret = *v->text == 't';
    return v->type == JSON_BOOL;
}

static int read_split(const struct json *split, struct arena *a, struct dispatch_rule *ret, struct err *err)
{
    if (split->type != JSON_OBJECT)
        return wrong("split", "an object with `dims` of a `mesh`, or an `index`", err);
    int r = 0;
    JSON_FOREACH(m, split) {
        if (json_key_is(m, "mesh"))
            r = read_name(m, "split.mesh", a, &ret->split_mesh, err);
        else if (json_key_is(m, "dims") && !ret->dims)
            r = read_dims(m, a, ret, err);
        else if (json_key_is(m, "index") && !ret->index)
            r = read_numbers(m, "split.index", a, &ret->index, &ret->n_index, err);
        else if (json_key_is(m, "elements"))
            r = read_bool(m, &ret->elements) ? 0 : wrong("split.elements", "true or false", err);
        else
            r = unknown("split", m, err);
        if (r < 0)
            return r;
    }
    return ret->dims && ret->index ? wrong("split", "over `dims` or by `index`, not both", err) : 0;
}

static int read_collect(const struct json *collect, struct arena *a, struct dispatch_rule *ret, struct err *err)
{
    if (collect->type != JSON_OBJECT)
        return wrong("collect", "an object with `at` coordinates of a `mesh`, or `ranks`", err);
    int r = 0;
    bool join;
    JSON_FOREACH(m, collect) {
        if (json_key_is(m, "mesh"))
            r = read_name(m, "collect.mesh", a, &ret->collect_mesh, err);
        else if (json_key_is(m, "at") && !ret->at)
            r = read_at(m, a, ret, err);
        else if (json_key_is(m, "ranks") && !ret->ranks)
            r = read_numbers(m, "collect.ranks", a, &ret->ranks, &ret->n_ranks, err);
        else if (json_key_is(m, "join") && read_bool(m, &join))
            ret->join = join ? DISPATCH_JOIN : DISPATCH_LIST;
        else
            r = unknown("collect", m, err);
        if (r < 0)
            return r;
    }
    return ret->at && ret->ranks ? wrong("collect", "`at` coordinates or from `ranks`, not both", err) : 0;
}

int dispatch_rule_read(const struct json *split, const struct json *collect, struct arena *a, struct dispatch_rule *ret,
                       struct err *err)
{
    *ret = (struct dispatch_rule){0};
    int r = split ? read_split(split, a, ret, err) : 0;
    return r == 0 && collect ? read_collect(collect, a, ret, err) : r;
}
