// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/likeness.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define WORLD "tests/golden/world"

enum { WORLD_MAX = 64 * 1024, DOCUMENT_MAX = 1024 * 1024, ARGUMENTS_MAX = 9, LIKENESS_DEPTH_MAX = 8 };

struct expansion {
    struct arena *arena;
    struct json_writer w;
    int depth; // of likenesses of likenesses
};

static void put(struct expansion *e, const struct json *v);

static const struct json *parse(struct expansion *e, const char *text)
{
    struct json *root = NULL;
    struct err err = ERR_INIT;
    if (json_parse(text, strlen(text), NULL, e->arena, &root, &err) < 0)
        fail_msg("%s in: %.200s", err.msg, text);
    return root;
}

static const char *read_world(struct expansion *e, const char *name)
{
    struct buf b = BUF_INIT(WORLD_MAX);
    char chunk[4096];
    const char *path = arena_printf(e->arena, WORLD "/%s.json", name);
    FILE *f = fopen(path, "re");
    if (!f)
        fail_msg("%s: there is no such thing to be like", path);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        buf_append(&b, chunk, n);
    fclose(f);
    const char *text = arena_strdup(e->arena, buf_str(&b));
    buf_done(&b);
    return text;
}

// $1 to $9.
static const char *with_arguments(struct expansion *e, const char *text, char *const *arguments, int n)
{
    struct buf b = BUF_INIT(WORLD_MAX);
    for (; *text; text++) {
        int i = text[0] == '$' && text[1] >= '1' && text[1] <= '9' ? text[1] - '1' : -1;
        if (i >= n)
            fail_msg("an argument is missing: %.200s", text);
        if (i < 0)
            buf_putc(&b, *text);
        else
            buf_puts(&b, arguments[i]);
        text += i >= 0;
    }
    const char *all = arena_strdup(e->arena, buf_str(&b));
    buf_done(&b);
    return all;
}

static const struct json *likeness(struct expansion *e, const struct json *like)
{
    char *words = json_str(like, e->arena), *arguments[ARGUMENTS_MAX], *name = words, *next;
    int n = 0;
    assert_non_null(words);
    while ((next = strchr(words, ' '))) {
        *next = '\0';
        words = next + 1;
        assert_true(n < ARGUMENTS_MAX);
        arguments[n++] = words;
    }
    assert_true(e->depth < LIKENESS_DEPTH_MAX);
    const char *text = with_arguments(e, read_world(e, name), arguments, n);
    struct expansion inner = {.arena = e->arena, .depth = e->depth + 1, .w = WRITER_INIT_MAX(DOCUMENT_MAX)};
    put(&inner, parse(&inner, text));
    return parse(e, writer_finish(&inner.w, e->arena));
}

// Also where it is null.
static const struct json *member(const struct json *v, const char *key, size_t len)
{
    JSON_FOREACH(m, v)
        if (m->key_len == len && memcmp(m->key, key, len) == 0)
            return m;
    return NULL;
}

static void put_key(struct expansion *e, const struct json *v)
{
    if (v->key)
        writer_key(&e->w, v->key, v->key_len);
}

static void put_merged(struct expansion *e, const struct json *base, const struct json *v, bool root);

static void merge_members(struct expansion *e, const struct json *base, const struct json *v)
{
    writer_object(&e->w, NULL);
    JSON_FOREACH(m, base) {
        const struct json *change = member(v, m->key, m->key_len);
        if (change && change->type == JSON_NULL)
            continue;
        put_key(e, m);
        put_merged(e, m, change, false);
    }
    JSON_FOREACH(m, v) {
        if (member(base, m->key, m->key_len) || m->type == JSON_NULL || json_key_is(m, "like"))
            continue;
        put_key(e, m);
        put(e, m);
    }
    writer_object_end(&e->w);
}

static bool is_item(const struct json *item, const char *by, const struct json *change)
{
    const struct json *name = json_get(item, by);
    return name && name->len == change->key_len + 2 && memcmp(name->text + 1, change->key, change->key_len) == 0;
}

static void merge_items(struct expansion *e, const struct json *list, const struct json *v)
{
    const char *by = json_get(list->child, "type") ? "type" : "name";
    writer_list(&e->w, NULL);
    JSON_FOREACH(item, list) {
        const struct json *change = v->child;
        while (change && !is_item(item, by, change))
            change = change->next;
        if (!change || change->type != JSON_NULL)
            put_merged(e, item, change, false);
    }
    JSON_FOREACH(change, v) {
        const struct json *item = list->child;
        while (item && !is_item(item, by, change))
            item = item->next;
        if (item)
            continue;
        writer_object(&e->w, NULL);
        writer_key(&e->w, by, strlen(by));
        writer_str(&e->w, NULL, arena_strndup(e->arena, change->key, change->key_len));
        JSON_FOREACH(m, change) {
            put_key(e, m);
            put(e, m);
        }
        writer_object_end(&e->w);
    }
    writer_list_end(&e->w);
}

// The likeness has no "like" any more, at any depth.
static void put_merged(struct expansion *e, const struct json *base, const struct json *v, bool root)
{
    bool merges = v && v->type == JSON_OBJECT && (root || !json_get(v, "like"));
    if (!v)
        writer_raw(&e->w, NULL, base->text, base->len);
    else if (merges && base->type == JSON_OBJECT)
        merge_members(e, base, v);
    else if (merges && base->type == JSON_LIST && base->child)
        merge_items(e, base, v);
    else
        put(e, v);
}

static void put(struct expansion *e, const struct json *v)
{
    const struct json *like = v->type == JSON_OBJECT ? json_get(v, "like") : NULL;
    bool object = v->type == JSON_OBJECT;
    if (like) {
        put_merged(e, likeness(e, like), v, true);
        return;
    }
    if (!object && v->type != JSON_LIST) {
        writer_raw(&e->w, NULL, v->text, v->len);
        return;
    }
    (object ? writer_object : writer_list)(&e->w, NULL);
    JSON_FOREACH(m, v) {
        put_key(e, m);
        put(e, m);
    }
    (object ? writer_object_end : writer_list_end)(&e->w);
}

const char *likeness_expand(const char *json, struct arena *a)
{
    struct expansion e = {.arena = a, .w = WRITER_INIT_MAX(DOCUMENT_MAX)};
    put(&e, parse(&e, json));
    return writer_finish(&e.w, a);
}
