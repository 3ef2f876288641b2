// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/object.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/proxy/deal.h"

#include <stdio.h>
#include <string.h>

enum { KEPT_MAX = 4096 }; // so it is none that lies in shared memory, which may change

// What a rank said that it keeps

static bool read_kept(const char *body, size_t len, struct ref_part *ret)
{
    struct arena a = ARENA_INIT;
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
    arena_done(&a);
    return good;
}

static void send_free(struct member *m, uint64_t id, bool pinned)
{
    struct err ignored = ERR_INIT;
    char body[64], text[REF_ID_SIZE];
    const struct record_header h = {.type = RECORD_FREE, .rank = m->rank};
    if (!m->peer.out || m->peer.close_code)
        return; // the process frees what came over this connection by itself
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

static const char *bytes_of(const struct call *c, const struct call_slot *slot)
{
    const struct blob *b = slot->blob ? slot->blob : c->answer.gathered;
    return b && slot->len ? b->data + slot->offset : "";
}

static struct member *seated(const struct group *g, uint32_t rank)
{
    return rank < g->world ? g->ranks[rank].member : NULL;
}

void object_discard_all(struct call *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        const struct call_slot *slot = &c->slots[i];
        struct member *m = seated(c->group, c->req.first + i);
        if (!slot->member && m && slot->len)
            object_discard(m, bytes_of(c, slot), slot->len, c->req.pin);
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
    map_set(&s->objects, text, NULL);
    s->n_object_parts += n;
    return true;
}

void object_forget(struct session *s, const char *text, uint32_t n)
{
    if (!map_has(&s->objects, text))
        return;
    map_del(&s->objects, text);
    quota_refund(s->quota, strlen(text) + 128);
    s->n_object_parts -= n;
}

// False: it was refused.
static bool answer(struct call *c, uint32_t rank, const struct ref *ref)
{
    struct buf text = BUF_INIT(REF_TEXT_MAX), body = BUF_INIT(REF_TEXT_MAX + 64);
    ref_write(ref, &text);
    ref_write_json(ref, &body);
    bool good = !text.over && !body.over && (c->req.pin || remember(c->session, buf_str(&text), ref->n));
    if (!good) {
        call_refuse(c, ERR_LIMIT, "%s() of %s ran, but there is no room for a reference to its result", c->req.method,
                    c->group->key);
    } else {
        const struct record_header h = {.type = RECORD_RESULT, .call = c->req.id, .rank = rank};
        c->req.keep = false; // it is in the caller's hands
        answer_send_copy(c, &h, body.data, body.len);
    }
    buf_done(&text);
    buf_done(&body);
    return good;
}

static void refuse_answer(struct call *c, uint32_t rank)
{
    call_refuse(c, ERR_INTERNAL, "rank %u ran %s(), but does not say what it keeps: is its cadre-worker an older one?",
                rank, c->req.method);
}

static void init_ref(const struct call *c, struct ref *r, enum ref_form form, uint32_t n, struct ref_part *parts)
{
    *r = (struct ref){.form = form, .n = n, .parts = parts};
    snprintf(r->uid, sizeof r->uid, "%s", c->group->uid);
}

void object_single(struct call *c, struct member *m, const struct call_body *body)
{
    struct ref_part part = {.rank = m->rank, .attempt = m->attempt};
    struct ref ref;
    init_ref(c, &ref, REF_ONE, 1, &part);
    if (!read_kept(body->data, body->len, &part)) {
        refuse_answer(c, m->rank);
        return;
    }
    bool pinned = c->req.pin;
    if (!answer(c, m->rank, &ref)) // its slot has ended, and the call may be gone
        send_free(m, part.id, pinned);
}

void object_collect(struct call *c)
{
    const struct deal *d = c->deal;
    uint32_t n = d ? d->d.n_keep : c->n;
    struct arena a = ARENA_INIT;
    struct ref ref;
    struct ref_part *parts = arena_array(&a, MAX(n, 1u), sizeof *parts);
    init_ref(c, &ref, d && d->d.join ? REF_JOINED : REF_LIST, n, parts);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rank = d ? d->d.keep[i] : c->req.first + i;
        const struct call_slot *slot = &c->slots[rank - c->req.first];
        const struct member *m = seated(c->group, rank);
        parts[i] = (struct ref_part){.rank = rank, .attempt = m ? m->attempt : c->group->attempt};
        if (!read_kept(bytes_of(c, slot), slot->len, &parts[i])) {
            refuse_answer(c, rank);
            arena_done(&a);
            return;
        }
    }
    if (n == 0 || n > REF_PARTS_MAX)
        call_refuse(c, ERR_LIMIT, "%s() ran, but its results are kept by %u ranks, and a reference has 1 to %d parts",
                    c->req.method, n, REF_PARTS_MAX);
    else
        (void)answer(c, RECORD_GROUP, &ref);
    arena_done(&a);
}

void object_session_ends(struct session *s)
{
    const char *text;
    void *ignored;
    for (size_t i = 0; map_next(&s->objects, &i, &text, &ignored);) {
        struct arena a = ARENA_INIT;
        struct err err = ERR_INIT;
        struct ref ref;
        int r = ref_parse(text, strlen(text), &a, &ref, &err);
        const struct group *g = r == 0 ? map_get(&s->router->by_uid, ref.uid) : NULL;
        for (uint32_t k = 0; g && k < ref.n; k++) {
            struct member *m = seated(g, ref.parts[k].rank);
            if (m)
                send_free(m, ref.parts[k].id, false);
        }
        quota_refund(s->quota, strlen(text) + 128);
        arena_done(&a);
    }
    map_done(&s->objects);
}
