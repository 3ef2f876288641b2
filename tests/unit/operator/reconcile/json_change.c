// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/operator/reconcile/json_change.h"

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = 118, PATH_MAX_LEN = 256, INDENT = 4 };

struct change {
    struct buf *out;
    enum json_change_kind kind;
};

static void compact(struct buf *out, const struct json *v)
{
    bool object = v->type == JSON_OBJECT, first = true;
    if (!object && v->type != JSON_LIST) {
        buf_append(out, v->text, v->len);
        return;
    }
    buf_putc(out, object ? '{' : '[');
    JSON_FOREACH(m, v) {
        buf_puts(out, first ? "" : ", ");
        if (object)
            buf_printf(out, "\"%.*s\": ", (int)m->key_len, m->key);
        compact(out, m);
        first = false;
    }
    buf_putc(out, object ? '}' : ']');
}

static void put_lines(struct buf *out, const struct json *v, size_t indent)
{
    bool object = v->type == JSON_OBJECT;
    buf_puts(out, object ? "{\n" : "[\n");
    JSON_FOREACH(m, v) {
        size_t used = indent + 2;
        buf_printf(out, "%*s", (int)used, "");
        if (object)
            buf_printf(out, "\"%.*s\": ", (int)m->key_len, m->key);
        json_change_value(out, m, indent + 2, used + (object ? m->key_len + 4 : 0));
        buf_puts(out, m->next ? ",\n" : "\n");
    }
    buf_printf(out, "%*s%c", (int)indent, "", object ? '}' : ']');
}

void json_change_value(struct buf *out, const struct json *v, size_t indent, size_t used)
{
    struct buf line = BUF_INIT(4 * 1024 * 1024);
    compact(&line, v);
    if (used + line.len <= COLUMNS || (v->type != JSON_OBJECT && v->type != JSON_LIST) || !v->child)
        buf_append(out, buf_str(&line), line.len);
    else
        put_lines(out, v, indent);
    buf_done(&line);
}

static void put(struct change *c, const char *path, const struct json *v)
{
    buf_printf(c->out, "%*s%s: ", INDENT, "", path);
    json_change_value(c->out, v, INDENT, INDENT + strlen(path) + 2);
    buf_putc(c->out, '\n');
}

static void put_word(struct change *c, const char *path, const char *word)
{
    buf_printf(c->out, "%*s%s: %s\n", INDENT, "", path, word);
}

static const struct json *member(const struct json *v, const struct json *like)
{
    JSON_FOREACH(m, v)
        if (m->key_len == like->key_len && memcmp(m->key, like->key, m->key_len) == 0)
            return m;
    return NULL;
}

static const struct json *item(const struct json *list, const char *by, const struct json *name)
{
    JSON_FOREACH(m, list) {
        const struct json *have = json_get(m, by);
        if (have->len == name->len && memcmp(have->text, name->text, name->len) == 0)
            return m;
    }
    return NULL;
}

static bool all_have(const struct json *list, const char *by)
{
    JSON_FOREACH(m, list) {
        const struct json *name = json_get(m, by);
        if (!name || name->type != JSON_STRING || item(list, by, name) != m)
            return false;
    }
    return list->child;
}

// NULL: each list is one value.
static const char *name_of_items(const struct json *before, const struct json *after)
{
    static const char *const names[] = {"type", "name"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!all_have(before, names[i]) || !all_have(after, names[i]))
            continue;
        const struct json *at = after->child; // items that stay come first, in their order
        JSON_FOREACH(m, before) {
            const struct json *name = json_get(m, names[i]);
            if (!item(after, names[i], name))
                continue;
            if (item(after, names[i], name) != at)
                return NULL;
            at = at->next;
        }
        return names[i];
    }
    return NULL;
}

static void compare(struct change *c, const char *path, const struct json *before, const struct json *after);

static const char *join(char out[static PATH_MAX_LEN], const char *path, const char *name, size_t len)
{
    snprintf(out, PATH_MAX_LEN, "%s%s%.*s", path, *path ? "." : "", (int)len, name);
    return out;
}

static void compare_members(struct change *c, const char *path, const struct json *before, const struct json *after)
{
    char at[PATH_MAX_LEN];
    JSON_FOREACH(m, after) {
        const struct json *was = member(before, m);
        join(at, path, m->key, m->key_len);
        if (was)
            compare(c, at, was, m);
        else if (c->kind != JSON_CHANGE_PATCH || m->type != JSON_NULL)
            put(c, at, m);
    }
    JSON_FOREACH(m, before)
        if (!member(after, m))
            put_word(c, join(at, path, m->key, m->key_len), c->kind == JSON_CHANGE_PATCH ? "not said" : "gone");
}

// A patch contains whole lists.
static void compare_items(struct change *c, const char *path, const struct json *before, const struct json *after,
                          const char *by)
{
    char at[PATH_MAX_LEN];
    struct change whole = {c->out, JSON_CHANGE_WHOLE};
    JSON_FOREACH(m, after) {
        const struct json *name = json_get(m, by), *was = item(before, by, name);
        join(at, path, name->text + 1, name->len - 2);
        if (was)
            compare(&whole, at, was, m);
        else
            put(c, at, m);
    }
    JSON_FOREACH(m, before) {
        const struct json *name = json_get(m, by);
        if (!item(after, by, name))
            put_word(c, join(at, path, name->text + 1, name->len - 2), "gone");
    }
}

static bool same(const struct json *a, const struct json *b)
{
    struct buf x = BUF_INIT(1024 * 1024), y = BUF_INIT(1024 * 1024);
    compact(&x, a);
    compact(&y, b);
    bool equal = str_eq(buf_str(&x), buf_str(&y));
    buf_done(&x);
    buf_done(&y);
    return equal;
}

static void compare(struct change *c, const char *path, const struct json *before, const struct json *after)
{
    const char *by = before->type == JSON_LIST && after->type == JSON_LIST ? name_of_items(before, after) : NULL;
    if (before->type == JSON_OBJECT && after->type == JSON_OBJECT)
        compare_members(c, path, before, after);
    else if (by)
        compare_items(c, path, before, after, by);
    else if (!same(before, after))
        put(c, path, after);
}

void json_change_print(struct buf *out, const char *root, const struct json *before, const struct json *after,
                       enum json_change_kind kind)
{
    struct change c = {out, kind};
    if (before)
        compare(&c, root, before, after);
    else
        JSON_FOREACH(m, after) {
            char at[PATH_MAX_LEN];
            put(&c, join(at, root, m->key, m->key_len), m);
        }
}
