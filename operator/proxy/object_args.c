// SPDX-License-Identifier: Apache-2.0
// References in arguments get what it takes to fetch the objects.
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/proxy/object.h"

#include <stdio.h>
#include <string.h>

static void write_owner(const struct member *m, const struct group *g, struct json_writer *w)
{
    char text[256];
    snprintf(text, sizeof text, "rank %u of %s%s%s", m->rank, g->key, m->pod ? " in pod " : "", m->pod ? m->pod : "");
    for (char *p = text; *p; p++)
        if (*p == '"' || *p == '\\' || *p < ' ' || *p > '~') // whoever reads it looks for no escapes
            *p = '?';
    writer_str(w, "owner", text);
}

static void write_place(const struct call *c, const struct member *m, const struct ref_part *p, struct json_writer *w)
{
    char at[96], key[REF_KEY_SIZE];
    const char *address = str_empty(m->address) ? "127.0.0.1" : m->address;
    bool v6 = strchr(address, ':') != NULL;
    int64_t until = clock_wall_ms(c->router->config.clock) + OBJECT_KEY_MS + c->req.timeout_ms;
    if (!m->object_port || !m->secret)
        return;
    snprintf(at, sizeof at, "%s%s%s:%u", v6 ? "[" : "", address, v6 ? "]" : "", m->object_port);
    ref_key(m->secret, p->id, until, key);
    writer_str(w, "at", at);
    writer_str(w, "key", key);
    writer_i64(w, "until", until);
}

static int write_part(const struct call *c, const struct ref *ref, uint32_t i, struct buf *out, struct err *err)
{
    struct group *g;
    struct member *m;
    int r = object_group(c->session, ref, &g, err);
    if (r == 0)
        r = object_member(g, &ref->parts[i], &m, err);
    if (r < 0)
        return err_wrap(err, "%s()", c->req.method);
    struct ref one = {.form = REF_ONE, .n = 1, .parts = &ref->parts[i]};
    struct buf text = BUF_INIT(512);
    struct json_writer w;
    memcpy(one.uid, ref->uid, sizeof one.uid);
    ref_write(&one, &text);
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_str(&w, "$ref", buf_str(&text));
    write_owner(m, g, &w);
    write_place(c, m, &ref->parts[i], &w);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
    writer_done(&w);
    buf_done(&text);
    return out->over ? err_set(err, ERR_LIMIT, "%s(): too many references in its arguments", c->req.method) : 0;
}

int object_write_parts(const struct call *c, const struct ref *ref, uint32_t first, uint32_t n, struct buf *out,
                       struct err *err)
{
    int r = 0;
    if (n == 1)
        return write_part(c, ref, first, out, err);
    buf_puts(out, REF_JOIN "[");
    for (uint32_t i = 0; r == 0 && i < n; i++) {
        if (i)
            buf_putc(out, ',');
        r = write_part(c, ref, first + i, out, err);
    }
    buf_puts(out, "]}");
    return r;
}

// `all`: the arguments are nothing else.
static int write_one(const struct call *c, const struct ref_found *f, bool all, struct buf *out, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct ref ref;
    int r = ref_parse(f->text, f->text_len, &a, &ref, err);
    bool joined = all && ref.form == REF_JOINED;
    if (r == 0 && ref.n > 1 && !joined)
        r = err_set(err, ERR_INVALID,
                    "%s(): the reference has %u parts, and each rank can only get one of them here: pass it as all the "
                    "arguments of a call that deals out %u pieces, or get it first",
                    c->req.method, ref.n, ref.n);
    if (r == 0)
        r = object_write_parts(c, &ref, 0, ref.n, out, err);
    arena_done(&a);
    return r;
}

int object_arguments(struct call *c, const struct record_call *parts, bool whole, struct blob **ret, struct err *err)
{
    struct ref_found f;
    size_t at = 0, done = 0;
    int r = 0;
    *ret = NULL;
    if (strncmp(c->req.method, "object.", 7) == 0 || !ref_mentioned(parts->args, parts->args_len))
        return 0;
    bool all = ref_is(parts->args, parts->args_len, &f);
    if (!whole && all) {
        c->args.refs = c->args.ref_pieces = true;
        return 0;
    }
    struct buf args = BUF_INIT(16 * REF_ARGS_MAX);
    while (r == 0 && ref_next(parts->args, parts->args_len, &at, &f)) {
        size_t from = (size_t)(f.json - parts->args);
        (void)buf_append(&args, parts->args + done, from - done);
        r = write_one(c, &f, all, &args, err);
        done = from + f.len;
    }
    if (r == 0 && done) {
        (void)buf_append(&args, parts->args + done, parts->args_len - done);
        size_t head = 4 + parts->head_len;
        struct blob *b = args.over ? NULL : blob_new(head + args.len, c->quota);
        if (b) {
            memcpy(b->data, parts->head - 4, head);
            memcpy(b->data + head, args.data, args.len);
            c->args.refs = true;
        } else {
            r = err_set(err, ERR_LIMIT, "%s(): no room for its arguments", c->req.method);
        }
        *ret = b;
    }
    buf_done(&args);
    return r;
}
