// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/reference.h"

#include "common/base/fiber.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"

#include <stdio.h>

enum { PART_UNITS = 4096 }; // cost of a part, with its key

int reference_group(const struct router *r, const char *ns, const struct ref *ref, struct group **ret, struct err *err)
{
    struct group *g = map_get(&r->by_uid, ref->uid);
    if (!g && str_starts(ref->uid, REFERENCE_LOCAL_UID))
        return err_set(err, ERR_GONE,
                       "ReferenceLost: the object is of another local run (its group has UID %s), and a reference is "
                       "good in calls to its own run only",
                       ref->uid);
    if (!g)
        return err_set(err, ERR_GONE,
                       "ReferenceLost: the WorkerGroup with UID %s, whose processes kept the object, is "
                       "gone, or not known here",
                       ref->uid);
    if (!str_eq(g->ns, ns))
        return err_set(err, ERR_FORBIDDEN,
                       "a reference to an object in namespace %s; this connection is for the groups "
                       "of %s",
                       g->ns, ns);
    *ret = g;
    return 0;
}

int reference_member(const struct group *g, const struct ref_part *p, struct member **ret, struct err *err)
{
    if (p->rank >= g->world)
        return err_set(err, ERR_GONE, "ReferenceLost: %s has no rank %u any more, which kept the object", g->key,
                       p->rank);
    struct member *m = g->ranks[p->rank].member;
    if (m && m->attempt == p->attempt) {
        *ret = m;
        return 0;
    }
    if (p->attempt < MAX(g->oldest, m ? m->attempt : 0))
        return err_set(err, ERR_GONE,
                       "ReferenceLost: rank %u of %s kept the object in attempt %u, which is over: it is at attempt %u",
                       p->rank, g->key, p->attempt, MAX(g->attempt, m ? m->attempt : 0));
    return err_set(err, ERR_GONE, "ReferenceLost: rank %u of %s, attempt %u, which kept the object, is not connected",
                   p->rank, g->key, p->attempt);
}

// The owner, the address and the key of an object

static void write_owner(const struct member *m, const struct group *g, struct json_writer *w)
{
    char text[256];
    snprintf(text, sizeof text, "rank %u of %s%s%s", m->rank, g->key, m->pod ? " in pod " : "", m->pod ? m->pod : "");
    for (char *p = text; *p; p++)
        if (*p == '"' || *p == '\\' || *p < ' ' || *p > '~') // readers of this text do not expect escapes
            *p = '?';
    writer_str(w, "owner", text);
}

static void write_place(const struct reference_call *c, const struct member *m, const struct ref_part *p,
                        struct json_writer *w)
{
    char at[96], key[REF_KEY_SIZE];
    int64_t until = clock_wall_ms(c->router->config.clock) + REFERENCE_KEY_MS + c->timeout_ms;
    if (!m->secret || !member_at(m, at, sizeof at))
        return;
    ref_key(m->secret, p->id, until, key);
    writer_str(w, "at", at);
    writer_str(w, "key", key);
    writer_i64(w, "until", until);
}

static int write_part(const struct reference_call *c, const struct ref *ref, uint32_t i, struct buf *out,
                      struct err *err)
{
    struct ref one = {.form = REF_ONE, .n = 1, .parts = &ref->parts[i]};
    _cleanup_(buf_done) struct buf text = BUF_INIT(512);
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    struct group *g;
    struct member *m;
    memcpy(one.uid, ref->uid, sizeof one.uid);
    fiber_spend(PART_UNITS);
    ref_write(&one, &text); // it may stop the fiber, and the process may end meanwhile: it is looked up afterwards
    int r = reference_group(c->router, c->ns, ref, &g, err);
    if (r == 0)
        r = reference_member(g, &ref->parts[i], &m, err);
    if (r < 0)
        return err_wrap(err, "%s()", c->method);
    writer_object(&w, NULL);
    writer_str(&w, "$ref", buf_str(&text));
    write_owner(m, g, &w);
    write_place(c, m, &ref->parts[i], &w);
    writer_object_end(&w);
    buf_append(out, buf_str(&w.buf), w.buf.len);
    return out->over ? err_set(err, ERR_LIMIT, "%s(): too many references in its arguments", c->method) : 0;
}

int reference_write(const struct reference_call *c, const struct ref *ref, uint32_t first, uint32_t n, struct buf *out,
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

// `all`: the reference is the only argument.
static int write_one(const struct reference_call *c, const struct ref_found *f, bool all, struct buf *out,
                     struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct ref ref;
    int r = ref_parse(f->text, f->text_len, &a, &ref, err);
    if (r < 0)
        return r;
    if (ref.n > 1 && !(all && ref.form == REF_JOINED))
        return err_set(err, ERR_INVALID,
                       "%s(): the reference has %u parts, and each rank can only get one of them here: pass it as the "
                       "only argument of a call with %u pieces, or get it first",
                       c->method, ref.n, ref.n);
    return reference_write(c, &ref, 0, ref.n, out, err);
}

int reference_write_all(const struct reference_call *c, const char *args, size_t len, struct buf *out, bool *ret_any,
                        struct err *err)
{
    struct ref_found f;
    size_t at = 0, done = 0;
    bool all = ref_is(args, len, &f);
    int r = 0;
    while (r == 0 && ref_next(args, len, &at, &f)) {
        size_t from = (size_t)(f.json - args);
        (void)buf_append(out, args + done, from - done);
        r = write_one(c, &f, all, out, err);
        done = from + f.len;
    }
    *ret_any = done > 0;
    if (r == 0 && done && buf_append(out, args + done, len - done) < 0)
        r = err_set(err, ERR_LIMIT, "%s(): too many references in its arguments", c->method);
    return r;
}
