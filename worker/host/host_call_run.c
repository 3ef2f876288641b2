// SPDX-License-Identifier: Apache-2.0
#include "worker/host/host_call_run.h"

#include "common/base/mem.h"
#include "worker/host/host_call_batch.h"
#include "worker/host/host_call_view.h"
#include "worker/host/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static cadre_result parse_args(struct cadre_call *c)
{
    struct err err = ERR_INIT;
    if (batch_is_safetensors(c->args, c->args_len))
        return call_batch_read(c);
    if (json_parse_values(c->args, c->args_len, 1, &c->arena, &c->root, &err) < 0)
        return call_fail(c, CADRE_INVALID_ARGUMENT, "%s(): the arguments cannot be read: %s", c->method, err.msg);
    if (c->root->type != JSON_LIST && c->root->type != JSON_OBJECT)
        return call_fail(c, CADRE_INVALID_ARGUMENT,
                         "%s(): the arguments are a %s; they must be a list (by position) or an object (by name)",
                         c->method, json_type_name(c->root->type));
    return CADRE_OK;
}

void call_run(struct cadre_call *c, const cadre_method *method, void *self)
{
    c->method = method->name;
    cadre_result r = parse_args(c);
    c->ran = r == CADRE_OK;
    if (c->ran)
        r = method->run(self, c);
    nested_end(&c->nested);
    if (r == CADRE_OK && c->result_batch)
        r = call_batch_write(c);
    if (r == CADRE_OK && c->device.result)
        r = call_view_write(c);
    call_answered(c, r);
}

// The ABI: arguments

CADRE_EXPORT const char *cadre_call_traceparent(const cadre_call *c)
{
    return c->trace[0] ? c->trace : NULL;
}

static const struct json *find_arg(const struct cadre_call *c, size_t position, const char *name)
{
    if (!c->root)
        return NULL;
    if (c->root->type == JSON_OBJECT && !name)
        return NULL;
    JSON_FOREACH(item, c->root)
        if (c->root->type == JSON_OBJECT ? json_key_is(item, name) : position-- == 0)
            return item;
    return NULL;
}

static cadre_result get_arg(struct cadre_call *c, size_t position, const char *name, const struct json **ret)
{
    *ret = find_arg(c, position, name);
    if (*ret)
        return CADRE_OK;
    return call_missing(c, name, position);
}

static cadre_result wrong_type(struct cadre_call *c, const char *name, const struct json *v, const char *wanted)
{
    char is[64] = "";
    if (v->len > 40)
        snprintf(is, sizeof is, ", %u bytes long", v->len);
    else if (v->type != JSON_NULL)
        snprintf(is, sizeof is, " %.*s", (int)v->len, v->text);
    return call_fail(c, CADRE_INVALID_ARGUMENT, "%s(): argument '%s' must be %s, it is %s%s", c->method,
                     name ? name : "?", wanted, json_type_name(v->type), is);
}

// Finds an argument whose name is not in `names`. *ret_name: NULL = the arguments are a list, which is too long.
static bool find_surplus(struct cadre_call *c, const struct call_names *names, const char **ret_name, size_t *ret_len)
{
    *ret_name = NULL;
    *ret_len = 0;
    if (!c->root)
        return call_batch_surplus(c, names, ret_name, ret_len);
    if (c->root->type == JSON_LIST)
        return json_count(c->root) > names->n;
    JSON_FOREACH(item, c->root) {
        *ret_name = item->key;
        *ret_len = item->key_len;
        if (!call_names_have(names, item->key, item->key_len))
            return true;
    }
    return false;
}

static const char *names_text(const struct call_names *names, struct arena *a)
{
    const char *text = names->n ? "" : "no arguments";
    for (size_t i = 0; i < names->n; i++)
        text = arena_printf(a, "%s%s%s", text, i ? ", " : "", names->items[i]);
    return text;
}

CADRE_EXPORT cadre_result cadre_args_only(cadre_call *c, ...)
{
    struct call_names names;
    const char *name;
    size_t len;
    va_list list;
    names.n = 0;
    va_start(list, c);
    for (const char *s; names.n < ARRAY_LEN(names.items) && (s = va_arg(list, const char *));)
        names.items[names.n++] = s;
    va_end(list);
    if (!find_surplus(c, &names, &name, &len))
        return CADRE_OK;
    const char *takes = names_text(&names, &c->arena);
    if (name)
        return call_fail(c, CADRE_INVALID_ARGUMENT, "%s() has no argument '%.*s'; it takes %s", c->method,
                         (int)MIN(len, (size_t)100), name, takes);
    size_t n = json_count(c->root);
    return call_fail(c, CADRE_INVALID_ARGUMENT, "%s() was called with %zu argument%s; it takes %s", c->method, n,
                     n == 1 ? "" : "s", takes);
}

CADRE_EXPORT cadre_result cadre_arg_double(cadre_call *c, size_t position, const char *name, double *ret)
{
    const struct json *v;
    cadre_result r = get_arg(c, position, name, &v);
    return r != CADRE_OK || number_read(v, ret) ? r : wrong_type(c, name, v, "a number that fits a double");
}

CADRE_EXPORT cadre_result cadre_arg_int64(cadre_call *c, size_t position, const char *name, int64_t *ret)
{
    const struct json *v;
    cadre_result r = get_arg(c, position, name, &v);
    return r != CADRE_OK || json_i64(v, ret) ? r : wrong_type(c, name, v, "a whole number of 64 bits");
}

CADRE_EXPORT cadre_result cadre_arg_string(cadre_call *c, size_t position, const char *name, const char **ret)
{
    const struct json *v;
    cadre_result r = get_arg(c, position, name, &v);
    if (r != CADRE_OK)
        return r;
    size_t len;
    *ret = json_text(v, &c->arena, &len);
    if (*ret && strlen(*ret) < len)
        return wrong_type(c, name, v, "a string without U+0000");
    return *ret ? CADRE_OK : wrong_type(c, name, v, "a string");
}

CADRE_EXPORT cadre_result cadre_arg_json(cadre_call *c, size_t position, const char *name, const char **ret,
                                         size_t *ret_len)
{
    const struct json *v;
    if (!c->root && (*ret = call_batch_column(c, name, ret_len)))
        return CADRE_OK;
    cadre_result r = get_arg(c, position, name, &v);
    if (r != CADRE_OK)
        return r;
    *ret = v->text;
    *ret_len = v->len;
    return CADRE_OK;
}
