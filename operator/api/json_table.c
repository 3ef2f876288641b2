// SPDX-License-Identifier: Apache-2.0
#include "operator/api/json_table.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/rfc3339.h"
#include "common/base/str.h"
#include "operator/api/object.h"
#include "operator/api/quantity.h"
#include "operator/api/resource.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The path of the current value: links on the stack. Only an error turns it into text.
struct path {
    const struct path *up;
    const char *name; // a member; NULL for an item of a list
    size_t len;
    size_t index;
    bool map; // the name is data, and is shown as ["name"]
};

struct decoder {
    struct arena *arena;
    struct err *err;
};

enum { PATH_MAX_LEN = 256, SHOWN_MAX = 48 };

static void put_shown(struct buf *b, const char *s, size_t n, size_t most)
{
    for (size_t i = 0; i < n && i < most; i++)
        buf_append(b, s[i] >= 0x20 && s[i] <= 0x7e ? &s[i] : "?", 1);
    if (n > most)
        buf_puts(b, "...");
}

static void put_path(struct buf *b, const struct path *p)
{
    if (!p)
        return;
    put_path(b, p->up);
    if (!p->name) {
        buf_printf(b, "[%zu]", p->index);
    } else if (p->map) {
        buf_puts(b, "[\"");
        put_shown(b, p->name, p->len, SHOWN_MAX);
        buf_puts(b, "\"]");
    } else {
        if (b->len && p->len)
            buf_putc(b, '.');
        put_shown(b, p->name, p->len, PATH_MAX_LEN);
    }
}

// The tables limit the depth of a path. Only map keys come from a peer, and long ones are cut.
static int fail_at(const struct decoder *d, const struct path *path, const char *what)
{
    struct buf b = BUF_INIT(PATH_MAX_LEN * 2);
    put_path(&b, path);
    int r = err_set(d->err, ERR_INVALID, "%s%s%s", buf_str(&b), b.len ? ": " : "", what);
    buf_done(&b);
    return r;
}

static int fail_type(const struct decoder *d, const struct path *path, const char *expected, const struct json *v)
{
    struct buf b = BUF_INIT(PATH_MAX_LEN * 2);
    buf_printf(&b, "expected %s, got ", expected);
    if (v->type == JSON_OBJECT || v->type == JSON_LIST)
        buf_puts(&b, json_type_name(v->type));
    else
        put_shown(&b, v->text, v->len, SHOWN_MAX);
    int r = fail_at(d, path, buf_str(&b));
    buf_done(&b);
    return r;
}

static int read_str(const struct decoder *d, const struct path *path, const struct json *v, const char **ret)
{
    if (v->type != JSON_STRING)
        return fail_type(d, path, "string", v);
    *ret = json_str(v, d->arena);
    return 0;
}

static int read_int(const struct decoder *d, const struct path *path, const struct json *v, const struct json_field *f,
                    int64_t *ret)
{
    bool any = f->min == 0 && f->max == 0, small = f->kind != J_I64;
    int64_t min = !any ? f->min : small ? INT32_MIN : INT64_MIN;
    int64_t max = !any ? f->max : small ? INT32_MAX : INT64_MAX;
    bool exact = json_i64(v, ret);
    if (!exact && (v->type != JSON_NUMBER || memchr(v->text, '.', v->len) || memchr(v->text, 'e', v->len) ||
                   memchr(v->text, 'E', v->len)))
        return fail_type(d, path, "integer", v);
    if (!exact || *ret < min || *ret > max) { // not exact: over 64 bits
        char expected[80];
        snprintf(expected, sizeof expected, "integer from %" PRId64 " to %" PRId64, min, max);
        return fail_type(d, path, expected, v);
    }
    return 0;
}

static int read_enum(const struct decoder *d, const struct path *path, const struct json *v, const struct json_field *f,
                     int *ret)
{
    if (v->type != JSON_STRING)
        return fail_type(d, path, "string", v);
    for (int i = 0; f->names[i]; i++) {
        if (json_str_is(v, f->names[i])) {
            *ret = i;
            return 0;
        }
    }
    if (f->open_enum) {
        *ret = (int)f->missing;
        return 0;
    }
    struct buf b = BUF_INIT(PATH_MAX_LEN);
    buf_puts(&b, "one of ");
    for (int i = 0; f->names[i]; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", f->names[i]);
    int r = fail_type(d, path, buf_str(&b), v);
    buf_done(&b);
    return r;
}

static int read_time(const struct decoder *d, const struct path *path, const struct json *v, int64_t *ret)
{
    if (v->type != JSON_STRING || v->escaped || !rfc3339_parse(v->text + 1, v->len - 2, ret))
        return fail_type(d, path, "RFC 3339 time", v);
    return 0;
}

static int cmp_label(const void *a, const void *b)
{
    return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static bool key_starts(const struct json *v, const char *prefix)
{
    size_t n = prefix ? strlen(prefix) : 0;
    return v->key_len >= n && memcmp(v->key, prefix ? prefix : "", n) == 0;
}

static int read_labels(const struct decoder *d, const struct path *path, const struct json *v, const char *prefix,
                       struct labels *ret)
{
    size_t n = 0;
    JSON_FOREACH(item, v)
        n += key_starts(item, prefix);
    struct label *items = arena_array(d->arena, n, sizeof *items);
    n = 0;
    JSON_FOREACH(item, v) {
        if (!key_starts(item, prefix))
            continue;
        struct path at = {.up = path, .name = item->key, .len = item->key_len, .map = true};
        items[n].key = arena_strndup(d->arena, item->key, item->key_len);
        int r = read_str(d, &at, item, &items[n].value);
        if (r < 0)
            return r;
        n++;
    }
    if (n > 1)
        qsort(items, n, sizeof *items, cmp_label);
    for (size_t i = 1; i < n; i++) {
        struct path at = {.up = path, .name = items[i].key, .len = strlen(items[i].key), .map = true};
        if (str_eq(items[i].key, items[i - 1].key))
            return fail_at(d, &at, "given twice");
    }
    *ret = (struct labels){items, n};
    return 0;
}

static int read_quantity(const struct decoder *d, const struct path *path, const struct json *v, int64_t *ret)
{
    char text[64];
    bool string = v->type == JSON_STRING;
    size_t len = string ? v->len - 2 : v->len;
    if ((!string && v->type != JSON_NUMBER) || v->escaped || len >= sizeof text)
        return fail_type(d, path, "quantity", v);
    memcpy(text, v->text + string, len);
    text[len] = '\0';
    struct err ignored = ERR_INIT;
    return quantity_parse(text, ret, &ignored) < 0 ? fail_type(d, path, "quantity", v) : 0;
}

// Inserts a resource, and keeps the items sorted by id. Returns false if it is there already.
static bool insert_resource(struct resource *items, size_t *n, struct resource one)
{
    size_t at = *n;
    while (at && items[at - 1].id > one.id)
        at--;
    if (at && items[at - 1].id == one.id)
        return false;
    memmove(items + at + 1, items + at, (*n - at) * sizeof *items);
    items[at] = one;
    ++*n;
    return true;
}

// A resource without an id of its own counts as RESOURCE_OTHER in requests. Offers ignore it.
static int read_quantities(const struct decoder *d, const struct path *path, const struct json *v, bool offered,
                           struct resources *ret)
{
    struct resource *items = arena_array(d->arena, MIN(json_count(v), (size_t)RESOURCE_MAX), sizeof *items);
    struct resource other = {RESOURCE_OTHER, 0};
    size_t n = 0;
    JSON_FOREACH(item, v) {
        struct path at = {.up = path, .name = item->key, .len = item->key_len, .map = true};
        struct resource one = {.id = resource_id_n(item->key, item->key_len, offered)};
        int r = read_quantity(d, &at, item, &one.milli);
        if (r < 0)
            return r;
        if (one.id == RESOURCE_OTHER)
            other.milli = MAX(other.milli, one.milli);
        else if (one.milli && !insert_resource(items, &n, one))
            return fail_at(d, &at, "given twice");
    }
    if (other.milli && !offered)
        insert_resource(items, &n, other);
    *ret = (struct resources){n ? items : NULL, n};
    return 0;
}

static int read_object(const struct decoder *d, const struct path *path, const struct json *v,
                       const struct json_table *table, char *to);

static int read_i32(const struct decoder *d, const struct path *path, const struct json *v, const struct json_field *f,
                    int32_t *ret)
{
    int64_t value = 0;
    int r = read_int(d, path, v, f, &value);
    *ret = (int32_t)value;
    return r;
}

static int read_item(const struct decoder *d, const struct path *path, const struct json *v, const struct json_field *f,
                     char *to)
{
    if (f->kind == J_STRINGS)
        return read_str(d, path, v, (const char **)to);
    if (f->kind == J_I32S)
        return read_i32(d, path, v, f, (int32_t *)to);
    return v->type == JSON_OBJECT ? read_object(d, path, v, f->table, to) : fail_type(d, path, "object", v);
}

static int read_list(const struct decoder *d, const struct path *path, const struct json *v, const struct json_field *f,
                     void **ret, size_t *ret_n)
{
    size_t n = json_count(v), i = 0;
    size_t size = f->kind == J_STRINGS ? sizeof(char *) : f->kind == J_I32S ? sizeof(int32_t) : f->table->size;
    char *items = n ? arena_array(d->arena, n, size) : NULL;
    JSON_FOREACH(item, v) {
        struct path at = {.up = path, .index = i};
        int r = read_item(d, &at, item, f, items + i++ * size);
        if (r < 0)
            return r;
    }
    *ret = items;
    *ret_n = n;
    return 0;
}

static int read_items(const struct decoder *d, const struct path *path, const struct json *v, const char **ret)
{
    size_t n = 0;
    JSON_FOREACH(item, v) {
        struct path at = {.up = path, .index = n++};
        if (item->type != JSON_OBJECT)
            return fail_type(d, &at, "object", item);
    }
    *ret = n ? arena_strndup(d->arena, v->text, v->len) : NULL;
    return 0;
}

// Returns true if the JSON type fits the kind. The readers of all other kinds check the type themselves.
static bool shape_fits(enum json_kind kind, enum json_type type)
{
    switch (kind) {
    case J_LABELS:
    case J_QUANTITIES:
    case J_TEXT:
    case J_OBJECT:
        return type == JSON_OBJECT;
    case J_STRINGS:
    case J_I32S:
    case J_ITEMS:
    case J_LIST:
        return type == JSON_LIST;
    case J_BOOL:
        return type == JSON_BOOL;
    default:
        return true;
    }
}

static const char *shape_name(enum json_kind kind)
{
    static const char *const names[] = {
        [J_STRING] = "string", [J_BOOL] = "boolean",  [J_I32] = "integer",   [J_I64] = "integer",
        [J_TIME] = "string",   [J_ENUM] = "string",   [J_LABELS] = "object", [J_QUANTITIES] = "object",
        [J_TEXT] = "object",   [J_STRINGS] = "list",  [J_I32S] = "list",     [J_ITEMS] = "list",
        [J_LIST] = "list",     [J_OBJECT] = "object",
    };
    return names[kind];
}

static int read_field(const struct decoder *d, const struct path *path, const struct json *v,
                      const struct json_field *f, char *base)
{
    void *to = base + f->offset;
    size_t *n = (size_t *)(base + f->offset_n);
    if (!shape_fits(f->kind, v->type))
        return fail_type(d, path, shape_name(f->kind), v);
    switch (f->kind) {
    case J_STRING:
        return read_str(d, path, v, to);
    case J_BOOL:
        *(bool *)to = v->text[0] == 't';
        return 0;
    case J_I32:
        return read_i32(d, path, v, f, to);
    case J_I64:
        return read_int(d, path, v, f, to);
    case J_TIME:
        return read_time(d, path, v, to);
    case J_ENUM:
        return read_enum(d, path, v, f, to);
    case J_LABELS:
        return read_labels(d, path, v, f->prefix, to);
    case J_QUANTITIES:
        return read_quantities(d, path, v, f->offered, to);
    case J_TEXT:
        *(const char **)to = arena_strndup(d->arena, v->text, v->len);
        return 0;
    case J_ITEMS:
        return read_items(d, path, v, to);
    case J_STRINGS:
    case J_I32S:
    case J_LIST:
        return read_list(d, path, v, f, to, n);
    case J_OBJECT:
        if (f->offset_is)
            *(bool *)(base + f->offset_is) = true;
        return f->table ? read_object(d, path, v, f->table, to) : 0;
    }
    return 0;
}

// `present`: the object is there, but lacks the member.
static int fill_missing(const struct decoder *d, const struct path *path, const struct json_field *f, bool present,
                        char *base)
{
    void *to = base + f->offset;
    if (f->required && present)
        return fail_at(d, path, "missing");
    if (f->kind == J_OBJECT)
        return f->table ? read_object(d, path, NULL, f->table, to) : 0;
    if (f->missing_str)
        *(const char **)to = f->missing_str;
    if (!f->missing) // it is zero already, or another table has set it
        return 0;
    if (f->kind == J_BOOL)
        *(bool *)to = true;
    else if (f->kind == J_I32 || f->kind == J_ENUM)
        *(int32_t *)to = (int32_t)f->missing;
    else
        *(int64_t *)to = f->missing;
    return 0;
}

// Returns the index of the member in the table; table->n if the table lacks it.
static size_t field_index(const struct json_table *table, const struct json *member)
{
    size_t i = 0;
    while (i < table->n && !json_key_is(member, table->fields[i].name))
        i++;
    return i;
}

static int read_object(const struct decoder *d, const struct path *path, const struct json *v,
                       const struct json_table *table, char *to)
{
    uint64_t seen = 0;
    JSON_FOREACH(item, v) {
        size_t i = field_index(table, item);
        if (i == table->n || item->type == JSON_NULL)
            continue;
        struct path at = {.up = path, .name = item->key, .len = item->key_len};
        if (seen >> i & 1)
            return fail_at(d, &at, "given twice");
        seen |= UINT64_C(1) << i;
        int r = read_field(d, &at, item, &table->fields[i], to);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < table->n; i++) {
        const struct json_field *f = &table->fields[i];
        struct path at = {.up = path, .name = f->name, .len = strlen(f->name)};
        int r = seen >> i & 1 ? 0 : fill_missing(d, &at, f, v != NULL, to);
        if (r < 0)
            return r;
    }
    return 0;
}

int json_decode(const struct json_table *table, const struct json *v, const char *root, void *to, struct arena *a,
                struct err *err)
{
    struct decoder d = {.arena = a, .err = err};
    struct path at = {.name = root, .len = strlen(root)};
    if (v && v->type != JSON_OBJECT)
        return fail_type(&d, &at, "object", v);
    return read_object(&d, &at, v, table, to);
}

static const char *find_unknown(const struct path *path, const struct json *v, const struct json_table *table,
                                struct arena *a);

static const char *find_in_list(const struct path *path, const struct json *v, const struct json_table *table,
                                struct arena *a)
{
    const char *found = NULL;
    size_t i = 0;
    JSON_FOREACH(item, v) {
        struct path at = {.up = path, .index = i++};
        found = found ? found : find_unknown(&at, item, table, a);
    }
    return found;
}

static const char *find_unknown(const struct path *path, const struct json *v, const struct json_table *table,
                                struct arena *a)
{
    const char *found = NULL;
    JSON_FOREACH(item, v) {
        struct path at = {.up = path, .name = item->key, .len = item->key_len};
        size_t i = field_index(table, item);
        const struct json_field *f = i < table->n ? &table->fields[i] : NULL;
        if (found)
            break;
        if (!f) {
            struct buf b = BUF_INIT(PATH_MAX_LEN * 2);
            put_path(&b, &at);
            found = arena_strdup(a, buf_str(&b));
            buf_done(&b);
        } else if (f->table) {
            found = f->kind == J_LIST ? find_in_list(&at, item, f->table, a) : find_unknown(&at, item, f->table, a);
        }
    }
    return found;
}

const char *json_unknown(const struct json_table *table, const struct json *v, const char *root, struct arena *a)
{
    struct path at = {.name = root, .len = strlen(root)};
    return find_unknown(&at, v, table, a);
}
