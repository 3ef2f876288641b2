// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/remote_object.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/proxy/answer.h"
#include "operator/proxy/dispatch_plan.h"
#include "operator/proxy/reference.h"
#include "operator/proxy/tenant.h"

#include <stdio.h>
#include <string.h>

enum { KEPT_MAX = 4096 }; // bodies this short are never in shared memory, which may change

// Reads what a rank keeps, as the rank describes it.

static bool read_kept(const char *body, size_t len, struct ref_part *ret)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct err ignored = ERR_INIT;
    struct json *root;
    int64_t bytes = -1;
    bool good = len <= KEPT_MAX && json_parse(body, len, NULL, &a, &root, &ignored) == 0;
    const char *id = good ? json_str(json_get(root, "id"), &a) : NULL,
               *kind = good ? json_str(json_get(root, "kind"), &a) : NULL;
    good = id && kind && ref_id_read(id, strlen(id), &ret->id) && json_get(root, "bytes") &&
           json_i64(json_get(root, "bytes"), &bytes) && bytes >= 0 &&
           (str_eq(kind, "j") || str_eq(kind, "b") || str_eq(kind, "l"));
    if (good) {
        ret->bytes = (uint64_t)bytes;
        ret->kind = (enum ref_kind)kind[0];
    }
    return good;
}

static void send_free(struct member *m, uint64_t id, bool pinned)
{
    struct err ignored = ERR_INIT;
    char body[64], text[REF_ID_SIZE];
    const struct record_header h = {.type = RECORD_FREE, .rank = m->rank};
    if (!m->peer.out || m->peer.close_code)
        return; // the process itself frees what came over this connection
    ref_id_write(id, text);
    int len = snprintf(body, sizeof body, "{\"id\":\"%s\"%s}", text, pinned ? ",\"pinned\":true" : "");
    if (record_writer_copy(m->peer.out, &h, body, (size_t)len, &ignored) == 0)
        peer_changed(&m->peer);
}

void object_discard(struct member *m, const char *body, size_t len, bool pinned)
{
    struct ref_part part;
    if (read_kept(body, len, &part))
        send_free(m, part.id, pinned);
}

void object_discard_all(struct call *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct record_part kept = answer_result(&c->ranks[i]);
        struct member *m = group_member_at(c->group, c->req.first + i);
        if (!c->ranks[i].member && m && kept.len)
            object_discard(m, answer_bytes(&kept), kept.len, c->req.pin);
    }
}

// Answers

static bool remember(struct session *s, const char *text, uint32_t n)
{
    size_t cost = strlen(text) + 128;
    if (map_has(&s->objects, text))
        return true;
    if (!quota_charge(s->quota, cost))
        return false;
    map_set(&s->objects, text, (void *)(uintptr_t)n);
    s->n_object_parts += n;
    return true;
}

static void forget(struct session *s, const char *text)
{
    size_t n = (uintptr_t)map_del(&s->objects, text);
    if (!n)
        return;
    quota_refund(s->quota, strlen(text) + 128);
    s->n_object_parts -= n;
}

static int answer(struct call *c, uint32_t rank, const struct ref *ref, struct err *err)
{
    _cleanup_(buf_done) struct buf text = BUF_INIT(REF_TEXT_MAX), body = BUF_INIT(REF_TEXT_MAX + 64);
    ref_write(ref, &text);
    ref_write_json(ref, &body);
    if (text.over || body.over || !(c->req.pin || remember(c->session, buf_str(&text), ref->n)))
        return err_set(err, ERR_LIMIT, "%s() of %s ran, but this client has no room for a reference to its result",
                       c->req.method, c->group->key);
    c->req.keep = false; // the client has the reference now
    answer_send_copy(c, rank, body.data, body.len);
    return 0;
}

static int collect_parts(struct call *c, struct ref_part *parts, uint32_t n, struct err *err)
{
    struct ref ref = {.n = n, .parts = parts};
    ref.form = c->req.single ? REF_ONE : c->plan && c->plan->d.join ? REF_JOINED : REF_LIST;
    snprintf(ref.uid, sizeof ref.uid, "%s", c->group->uid);
    for (uint32_t i = 0; i < n; i++) {
        const struct call_rank *rank = answer_rank(c, i);
        const struct record_part kept = answer_result(rank);
        uint32_t number = c->req.first + (uint32_t)(rank - c->ranks);
        const struct member *m = group_member_at(c->group, number);
        parts[i] = (struct ref_part){.rank = number, .attempt = m ? m->attempt : c->group->attempt};
        if (!read_kept(answer_bytes(&kept), kept.len, &parts[i]))
            return err_set(err, ERR_INTERNAL,
                           "rank %u ran %s(), but did not say what it keeps: is its cadre-worker older than the "
                           "operator?",
                           number, c->req.method);
    }
    return answer(c, c->req.single ? c->req.first : RECORD_GROUP, &ref, err);
}

int object_collect(struct call *c, struct err *err)
{
    uint32_t n = answer_count(c);
    if (n == 0 || n > REF_PARTS_MAX)
        return err_set(err, ERR_LIMIT,
                       "%s() ran, but its results are kept by %u ranks, and a reference has 1 to %d parts",
                       c->req.method, n, REF_PARTS_MAX);
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    return collect_parts(c, arena_array(&a, n, sizeof(struct ref_part)), n, err);
}

void object_session_ends(struct session *s)
{
    const char *text;
    void *ignored;
    for (size_t i = 0; map_next(&s->objects, &i, &text, &ignored);) {
        _cleanup_(arena_done) struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct ref ref;
        int r = ref_parse(text, strlen(text), &a, &ref, &err);
        const struct group *g = r == 0 ? map_get(&s->router->by_uid, ref.uid) : NULL;
        for (uint32_t k = 0; g && k < ref.n; k++) {
            struct member *m = group_member_at(g, ref.parts[k].rank);
            if (m)
                send_free(m, ref.parts[k].id, false);
        }
        quota_refund(s->quota, strlen(text) + 128);
    }
    map_done(&s->objects);
}

// object.get, object.pin, object.free

static int read_ref(const struct call_head *head, const struct record_call *parts, struct arena *a, struct ref *ret,
                    struct ref_found *found, struct err *err)
{
    if (!ref_is(parts->args, parts->args_len, found))
        return err_set(err, ERR_INVALID, "%.*s needs one reference as its argument: {\"$ref\": \"cadre:...\"}",
                       (int)head->method_len, head->method);
    return ref_parse(found->text, found->text_len, a, ret, err);
}

static void write_head(const struct call_head *head, const struct group *g, const struct ref *ref, bool join,
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

static int make_body(struct session *s, const struct call_head *head, const struct group *g, const struct ref *ref,
                     const struct ref_found *f, struct blob **ret, struct err *err)
{
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    write_head(head, g, ref, call_head_method_is(head, "object.get"), &w);
    struct blob *b = blob_new(4 + w.buf.len + f->len, s->quota);
    if (b) {
        record_call_prefix(b->data, (uint32_t)w.buf.len);
        memcpy(b->data + 4, w.buf.data, w.buf.len);
        memcpy(b->data + 4 + w.buf.len, f->json, f->len);
    }
    *ret = b;
    return b ? 0 : err_set(err, ERR_THROTTLED, "too many calls of this client wait already");
}

// The group of the reference, and all of its processes that keep a part.
static int find_owners(const struct session *s, const struct ref *ref, struct group **ret, struct err *err)
{
    struct member *m;
    int r = reference_group(s->router, s->tenant->ns, ref, ret, err);
    for (uint32_t i = 0; r == 0 && i < ref->n; i++)
        r = reference_member(*ret, &ref->parts[i], &m, err);
    return r;
}

// Some parts are lost, so no call frees the others. `g` is NULL if all are lost.
static void free_rest(const struct group *g, const struct ref *ref)
{
    struct err ignored = ERR_INIT;
    struct member *m;
    for (uint32_t i = 0; g && i < ref->n; i++)
        if (reference_member(g, &ref->parts[i], &m, &ignored) == 0)
            send_free(m, ref->parts[i].id, true);
}

static int to_owners(struct session *s, struct record *rec, struct call_head *head, struct record_call *parts,
                     struct arena *a, struct blob **ret, struct err *err)
{
    struct ref ref;
    struct ref_found found;
    struct group *g = NULL;
    if (rec->h.rank != RECORD_GROUP || rec->h.dispatch || rec->h.execute || head->split || head->collect)
        return err_set(err, ERR_INVALID, "%.*s goes to the rank that has the object: leave out rank and modes",
                       (int)head->method_len, head->method);
    int r = read_ref(head, parts, a, &ref, &found, err);
    if (r < 0)
        return r;
    r = find_owners(s, &ref, &g, err);
    if (r == ERR_GONE && call_head_method_is(head, "object.free")) {
        free_rest(g, &ref);
        forget(s, arena_strndup(a, found.text, found.text_len));
    }
    if (r == 0)
        r = make_body(s, head, g, &ref, &found, ret, err);
    if (r < 0)
        return r;
    rec->h.rank = ref.form == REF_ONE ? ref.parts[0].rank : RECORD_GROUP;
    rec->h.dispatch = ref.form == REF_ONE ? 0 : RECORD_SPLIT;
    rec->h.execute = ref.form == REF_ONE ? 0 : RECORD_ALL;
    rec->blob = *ret;
    rec->body = (*ret)->data;
    rec->len = (*ret)->len;
    r = record_call_decode(rec->body, rec->len, parts, err);
    return r < 0 ? r : call_head_decode(parts->head, parts->head_len, head, err);
}

void object_note_free(struct call *c, struct blob *body)
{
    if (str_eq(c->req.method, "object.free"))
        c->frees = blob_ref(body);
}

void object_free_ends(struct call *c)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct blob *body = TAKE_PTR(c->frees);
    struct record_call parts;
    struct ref_found f;
    struct err ignored = ERR_INIT;
    if (!c->stat.failed && record_call_decode(body->data, body->len, &parts, &ignored) == 0 &&
        ref_is(parts.args, parts.args_len, &f))
        forget(c->session, arena_strndup(&a, f.text, f.text_len));
    blob_unref(body);
}

static int check_keep(const struct session *s, const struct record *rec, const struct call_head *head, struct err *err)
{
    if (head->pin && !head->keep)
        return err_set(err, ERR_INVALID, "\"pin\" is for results that stay on the workers: set \"keep\", too");
    if (!head->keep)
        return 0;
    if (head->pad)
        return err_set(err, ERR_INVALID,
                       "a result that stays on the workers keeps its padding: \"keep\" "
                       "and \"pad\" do not go together");
    if (rec->h.flags & RECORD_QUIET)
        return err_set(err, ERR_INVALID, "\"keep\" makes a reference, but the client wants no result");
    if (s->n_object_parts >= OBJECT_SESSION_PARTS)
        return err_set(err, ERR_LIMIT, "this session has %zu objects on workers, which is the limit; free some",
                       s->n_object_parts);
    return 0;
}

int object_begin(struct session *s, struct record *rec, struct call_head *head, struct record_call *parts,
                 struct blob **ret, struct err *err)
{
    *ret = NULL;
    bool put = call_head_method_is(head, "object.put");
    head->keep = head->keep || put;
    int r = check_keep(s, rec, head, err);
    if (r < 0 || head->method_len < 7 || memcmp(head->method, "object.", 7) != 0)
        return r;
    if (!put && !call_head_method_is(head, "object.get") && !call_head_method_is(head, "object.pin") &&
        !call_head_method_is(head, "object.free"))
        return err_set(err, ERR_NOT_FOUND,
                       "%.*s does not exist; there are object.put, object.get, object.pin and object.free",
                       (int)head->method_len, head->method);
    if (put) { // to one rank, or split
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
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    return to_owners(s, rec, head, parts, &a, ret, err);
}
