// SPDX-License-Identifier: Apache-2.0
#include "operator/api/json_encode.h"

#include "operator/api/json_table.h"

#include <assert.h>
#include <string.h>

static void write_object(struct json_writer *w, const char *key, const struct json_table *table, const char *from,
                         bool compared);

static const struct json_field *field_of(const struct json_table *table, const char *name)
{
    size_t i = 0;
    while (strcmp(table->fields[i].name, name) != 0)
        i++;
    return &table->fields[i];
}

static int64_t number_at(const struct json_field *f, const char *from)
{
    const void *at = from + f->offset;
    switch (f->kind) {
    case J_I32:
    case J_ENUM:
        return *(const int32_t *)at;
    default:
        return *(const int64_t *)at;
    }
}

static bool is_empty(const struct json_field *f, const char *from)
{
    const void *at = from + f->offset;
    switch (f->kind) {
    case J_STRING:
        return !*(const char *const *)at;
    case J_LABELS:
        return !((const struct labels *)at)->n;
    default:
        return !number_at(f, from);
    }
}

static void write_string(struct json_writer *w, const struct json_field *f, const char *from)
{
    const char *s = *(const char *const *)(from + f->offset);
    if (!s)
        s = f->missing_str;
    if (s && f->max)
        writer_str_max(w, f->name, s, (size_t)f->max);
    else
        writer_str(w, f->name, s);
}

static void write_number(struct json_writer *w, const struct json_field *f, const char *from)
{
    int64_t number = number_at(f, from);
    if (f->missing && number == f->missing)
        writer_null(w, f->name);
    else
        writer_i64(w, f->name, number);
}

static void write_list(struct json_writer *w, const struct json_field *f, const char *from, bool compared)
{
    const char *items = *(const char *const *)(from + f->offset);
    size_t n = *(const size_t *)(from + f->offset_n);
    if (!n && !f->keeps_empty) {
        writer_null(w, f->name);
        return;
    }
    writer_list(w, f->name);
    for (size_t i = 0; i < n && !(f->max && i == (size_t)f->max); i++)
        write_object(w, NULL, f->table, items + i * f->table->size, compared);
    writer_list_end(w);
}

static void write_field(struct json_writer *w, const struct json_field *f, const char *from, bool compared)
{
    switch (f->kind) {
    case J_STRING:
        write_string(w, f, from);
        break;
    case J_I32:
    case J_I64:
        write_number(w, f, from);
        break;
    case J_BOOL:
        writer_bool(w, f->name, *(const bool *)(from + f->offset));
        break;
    case J_STRINGS:
        writer_strs(w, f->name, *(const char *const *const *)(from + f->offset), *(const size_t *)(from + f->offset_n));
        break;
    case J_TIME:
        (f->micro ? writer_micro : writer_time)(w, f->name, number_at(f, from));
        break;
    case J_ENUM:
        writer_str(w, f->name, f->names[number_at(f, from)]);
        break;
    case J_LABELS:
        labels_write(w, f->name, (const struct labels *)(from + f->offset));
        break;
    case J_LIST:
        write_list(w, f, from, compared);
        break;
    case J_OBJECT:
        if (f->needs && is_empty(field_of(f->table, f->needs), from + f->offset))
            writer_null(w, f->name);
        else
            write_object(w, f->name, f->table, from + f->offset, compared);
        break;
    default:
        assert(!"no document of the operator has this field");
    }
}

static void write_members(struct json_writer *w, const struct json_table *table, const char *from, bool compared)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct json_field *f = &table->fields[i];
        if (!f->read_only && !(compared && f->since) && !(f->left_out && is_empty(f, from)))
            write_field(w, f, from, compared);
    }
}

static void write_object(struct json_writer *w, const char *key, const struct json_table *table, const char *from,
                         bool compared)
{
    writer_object(w, key);
    write_members(w, table, from, compared);
    writer_object_end(w);
}

void labels_write(struct json_writer *w, const char *key, const struct labels *l)
{
    writer_object(w, key);
    for (size_t i = 0; i < l->n; i++)
        writer_str(w, l->items[i].key, l->items[i].value);
    writer_object_end(w);
}

void json_encode_members(const struct json_table *table, const void *from, struct json_writer *w)
{
    write_members(w, table, from, false);
}

void json_encode(const struct json_table *table, const char *key, const void *from, struct json_writer *w)
{
    write_object(w, key, table, from, false);
}

const char *json_patch(const struct json_table *table, const char *key, const void *from, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    json_encode(table, key, from, &w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

static char *compared(const struct json_table *table, const void *from, struct arena *a)
{
    struct json_writer w = WRITER_INIT;
    write_object(&w, NULL, table, from, true);
    return writer_finish(&w, a);
}

bool json_same(const struct json_table *table, const void *a, const void *b)
{
    struct arena arena = ARENA_INIT;
    bool same = strcmp(compared(table, a, &arena), compared(table, b, &arena)) == 0;
    arena_done(&arena);
    return same;
}
