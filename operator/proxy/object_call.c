// SPDX-License-Identifier: Apache-2.0
// Who has what a reference names, and the methods object.*.
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/proxy/object.h"
#include "operator/proxy/tenant.h"

#include <string.h>

// Who has a part

int object_group(const struct session *s, const struct ref *ref, struct group **ret, struct err *err)
{
    struct group *g = map_get(&s->router->by_uid, ref->uid);
    if (!g && str_starts(ref->uid, OBJECT_LOCAL_UID))
        return err_set(err, ERR_GONE,
                       "ReferenceLost: the object is of another local run (its group has UID %s), and a reference is "
                       "good in calls to its own run only",
                       ref->uid);
    if (!g)
        return err_set(err, ERR_GONE,
                       "ReferenceLost: the WorkerGroup with UID %s, whose processes kept the object, is "
                       "gone, or not known here",
                       ref->uid);
    if (!str_eq(g->ns, s->tenant->ns))
        return err_set(err, ERR_FORBIDDEN,
                       "a reference to an object in namespace %s; this connection is for the groups "
                       "of %s",
                       g->ns, s->tenant->ns);
    *ret = g;
    return 0;
}

int object_member(const struct group *g, const struct ref_part *p, struct member **ret, struct err *err)
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

// object.get, object.pin, object.free

static int read_ref(const struct head *head, const struct record_call *parts, struct arena *a, struct ref *ret,
                    struct ref_found *found, struct err *err)
{
    if (!ref_is(parts->args, parts->args_len, found))
        return err_set(err, ERR_INVALID, "%.*s needs one reference as its argument: {\"$ref\": \"cadre:...\"}",
                       (int)head->method_len, head->method);
    return ref_parse(found->text, found->text_len, a, ret, err);
}

static void write_head(const struct head *head, const struct group *g, const struct ref *ref, bool join,
                       struct json_writer *w)
{
    writer_object(w, NULL);
    writer_key(w, "method", 6);
    writer_raw(w, NULL, head->method - 1, head->method_len + 2); // with its quotes
    writer_str(w, "group", g->key);
    if (head->timeout_ms)
        writer_i64(w, "timeoutMs", head->timeout_ms);
    writer_str(w, "whenNotReady", "Refuse");
    if (ref->form != REF_ONE) {
        writer_object(w, "collect");
        writer_list(w, "ranks");
        for (uint32_t i = 0; i < ref->n; i++)
            writer_i64(w, NULL, ref->parts[i].rank);
        writer_list_end(w);
        writer_bool(w, "join", join && ref->form == REF_JOINED);
        writer_object_end(w);
    }
    writer_object_end(w);
}

static int make_body(struct session *s, const struct head *head, const struct group *g, const struct ref *ref,
                     const struct ref_found *f, struct blob **ret, struct err *err)
{
    struct json_writer w;
    writer_init(&w, 0);
    write_head(head, g, ref, head_method_is(head, "object.get"), &w);
    struct blob *b = blob_new(4 + w.buf.len + f->len, s->quota);
    if (b) {
        record_call_prefix(b->data, (uint32_t)w.buf.len);
        memcpy(b->data + 4, w.buf.data, w.buf.len);
        memcpy(b->data + 4 + w.buf.len, f->json, f->len);
    }
    writer_done(&w);
    *ret = b;
    return b ? 0 : err_set(err, ERR_THROTTLED, "too many calls of this controller wait already");
}

static int to_owners(struct session *s, struct record *rec, struct head *head, struct record_call *parts,
                     struct arena *a, struct blob **ret, struct err *err)
{
    struct ref ref;
    struct ref_found found;
    struct group *g = NULL;
    struct member *m;
    if (rec->h.rank != RECORD_GROUP || rec->h.dispatch || rec->h.execute || head->split || head->collect)
        return err_set(err, ERR_INVALID, "%.*s goes to where the object is: no rank, no modes", (int)head->method_len,
                       head->method);
    int r = read_ref(head, parts, a, &ref, &found, err);
    if (r == 0)
        r = object_group(s, &ref, &g, err);
    for (uint32_t i = 0; r == 0 && i < ref.n; i++)
        r = object_member(g, &ref.parts[i], &m, err);
    if (r == 0)
        r = make_body(s, head, g, &ref, &found, ret, err);
    if (r < 0)
        return r;
    if (head_method_is(head, "object.free"))
        object_forget(s, arena_strndup(a, found.text, found.text_len), ref.n);
    rec->h.rank = ref.form == REF_ONE ? ref.parts[0].rank : RECORD_GROUP;
    rec->h.dispatch = ref.form == REF_ONE ? 0 : RECORD_SPLIT;
    rec->h.execute = ref.form == REF_ONE ? 0 : RECORD_ALL;
    rec->blob = *ret;
    rec->body = (*ret)->data;
    rec->len = (*ret)->len;
    r = record_call_decode(rec->body, rec->len, parts, err);
    return r < 0 ? r : head_decode(parts->head, parts->head_len, head, err);
}

static int check_keep(const struct session *s, const struct record *rec, const struct head *head, struct err *err)
{
    if (head->pin && !head->keep)
        return err_set(err, ERR_INVALID, "\"pin\" is for results that stay on the workers: \"keep\" goes with it");
    if (!head->keep)
        return 0;
    if (head->pad)
        return err_set(err, ERR_INVALID,
                       "a result that stays on the workers cannot be relieved of padding: \"keep\" "
                       "and \"pad\" do not go together");
    if (rec->h.flags & RECORD_QUIET)
        return err_set(err, ERR_INVALID, "\"keep\" makes a reference, but the caller wants no result");
    if (s->n_object_parts >= OBJECT_SESSION_PARTS)
        return err_set(err, ERR_LIMIT, "this session has %zu objects on workers; free some", s->n_object_parts);
    return 0;
}

int object_begin(struct session *s, struct record *rec, struct head *head, struct record_call *parts, struct blob **ret,
                 struct err *err)
{
    *ret = NULL;
    bool put = head_method_is(head, "object.put");
    head->keep = head->keep || put;
    int r = check_keep(s, rec, head, err);
    if (r < 0 || head->method_len < 7 || memcmp(head->method, "object.", 7) != 0)
        return r;
    if (!put && !head_method_is(head, "object.get") && !head_method_is(head, "object.pin") &&
        !head_method_is(head, "object.free"))
        return err_set(err, ERR_NOT_FOUND,
                       "there is no %.*s; there are object.put, object.get, object.pin and "
                       "object.free",
                       (int)head->method_len, head->method);
    if (put) { // to one, or dealt out
        if (!rec->h.execute)
            rec->h.execute = rec->h.dispatch ? RECORD_ALL : RECORD_ANY;
        if (!rec->h.dispatch)
            rec->h.dispatch = RECORD_ONE_TO_ALL;
        return 0;
    }
    if (head->keep)
        return err_set(err, ERR_INVALID, "%.*s makes no new object to keep", (int)head->method_len, head->method);
    if (rec->h.flags & RECORD_MORE)
        return ROUTER_COLLECT;
    struct arena a = ARENA_INIT;
    r = to_owners(s, rec, head, parts, &a, ret, err);
    arena_done(&a);
    return r;
}
