// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/golden.h"

#include "common/base/buf.h"
#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX_LEN = 4 * 1024 * 1024 };

static int read_file(const char *path, struct buf *b)
{
    char chunk[4096];
    size_t n;
    *b = BUF_INIT(FILE_MAX_LEN);
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    while ((n = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_append(b, chunk, n);
    fclose(f);
    return 0;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    if (!f) {
        perror(path);
        abort();
    }
    fputs(text, f);
    fclose(f);
}

static int run_case(const char *dir, const char *name, const char *in_name, const char *want_name, golden_fn fn)
{
    _cleanup_(free_p) char *in_path = xasprintf("%s/%s/%s", dir, name, in_name);
    _cleanup_(free_p) char *want_path = xasprintf("%s/%s/%s", dir, name, want_name);
    _cleanup_(buf_done) struct buf in, want;
    int missing = read_file(in_path, &in);
    bool same = false;
    if (missing == 0) {
        _cleanup_(free_p) char *got = fn(name, buf_str(&in), in.len);
        if (getenv("UPDATE_GOLDEN"))
            write_file(want_path, got);
        same = read_file(want_path, &want) == 0 && strcmp(buf_str(&want), got) == 0;
        if (!same)
            fprintf(stderr, "%s differs; produced:\n%s", want_path, got);
    } else {
        want = BUF_INIT(0);
        fprintf(stderr, "%s: cannot be read\n", in_path);
    }
    return !same;
}

static int is_case(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

int golden_run(const char *dir, const char *in_name, const char *want_name, golden_fn fn)
{
    struct dirent **entries;
    int n = scandir(dir, &entries, is_case, alphasort), failed = 0;
    if (n < 0) {
        perror(dir);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        failed += run_case(dir, entries[i]->d_name, in_name, want_name, fn);
        free(entries[i]);
    }
    free(entries);
    return n ? failed : -1;
}

int golden_each(const char *dir, const char *in_name, void (*fn)(const char *in))
{
    struct dirent **entries;
    int n = scandir(dir, &entries, is_case, alphasort);
    for (int i = 0; i < n; i++) {
        _cleanup_(free_p) char *path = xasprintf("%s/%s/%s", dir, entries[i]->d_name, in_name);
        _cleanup_(buf_done) struct buf in;
        if (read_file(path, &in) == 0)
            fn(buf_str(&in));
        free(entries[i]);
    }
    free(entries);
    return n;
}

static void put_line(struct buf *b, int depth)
{
    buf_printf(b, "\n%*s", depth * 2, "");
}

static void put_value(struct json_writer *w, const struct json *v, int depth)
{
    bool object = v->type == JSON_OBJECT;
    if ((!object && v->type != JSON_LIST) || !v->child) {
        buf_append(&w->buf, v->text, v->len);
        return;
    }
    buf_putc(&w->buf, object ? '{' : '[');
    JSON_FOREACH(item, v) {
        put_line(&w->buf, depth + 1);
        w->comma = false; // ours stand at the ends of the lines
        if (object) {
            writer_key(w, item->key, item->key_len);
            buf_putc(&w->buf, ' ');
        }
        put_value(w, item, depth + 1);
        if (item->next)
            buf_putc(&w->buf, ',');
    }
    put_line(&w->buf, depth);
    buf_putc(&w->buf, object ? '}' : ']');
}

char *golden_pretty(const char *json, size_t len)
{
    struct arena a = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json_writer w = WRITER_INIT_MAX(FILE_MAX_LEN);
    struct json *root;
    if (json_parse(json, len, NULL, &a, &root, &err) == 0)
        put_value(&w, root, 0);
    else
        buf_append(&w.buf, json, len);
    buf_putc(&w.buf, '\n');
    arena_done(&a);
    return buf_take(&w.buf);
}
