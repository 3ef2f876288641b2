// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/place_answer.h"

#include "common/base/json_writer.h"
#include "common/wire/peer_key.h"
#include "common/wire/ref.h"
#include "operator/proxy/proxy_group.h"

#include <string.h>

enum { QUERY_MAX = 4096 }; // bytes of a PLACE, which is read at once

struct place_query {
    int64_t rank, index, until;
    uint64_t rendezvous;
    const char *group; // NULL = its own group
};

static int read_query(const struct json *v, struct arena *a, struct place_query *ret)
{
    const char *rendezvous = json_str(json_get(v, "meeting"), a);
    ret->group = json_str(json_get(v, "group"), a);
    return json_i64(json_get(v, "rank"), &ret->rank) && json_i64(json_get(v, "index"), &ret->index) &&
                   json_i64(json_get(v, "until"), &ret->until) && ret->index >= 0 && ret->index <= UINT32_MAX &&
                   rendezvous && ref_id_read(rendezvous, strlen(rendezvous), &ret->rendezvous)
               ? 0
               : ERR_PROTO;
}

// Finds the other rank. In its own group, the rank must have the same attempt: others are about to end.
static const struct member *find(const struct router *r, const struct member *m, const struct place_query *q)
{
    const struct group *own = m->group;
    const struct group *g = own && q->group ? router_group_named(r, own->ns, q->group) : own;
    const struct member *found = g ? group_member_at(g, q->rank) : NULL;
    return found && found->attempt == (g == own ? m->attempt : g->attempt) && found->secret ? found : NULL;
}

static void answer(const struct router *r, struct member *m, const struct place_query *q)
{
    const struct member *found = find(r, m, q);
    const struct record_header h = {.rank = m->rank, .type = RECORD_PLACE};
    struct err ignored = ERR_INIT;
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    char at[96], id[REF_ID_SIZE], text[PEER_TEXT_SIZE], key[PEER_KEY_SIZE];
    ref_id_write(q->rendezvous, id);
    writer_object(&w, NULL);
    writer_str(&w, "meeting", id);
    if (found && member_at(found, at, sizeof at)) {
        peer_rendezvous_text(q->rendezvous, (uint32_t)q->index, q->until, text);
        peer_key(found->secret, text, key);
        writer_str(&w, "at", at);
        writer_str(&w, "key", key);
        writer_i64(&w, "until", q->until);
    }
    writer_object_end(&w);
    // If there is no room, the worker asks again.
    (void)record_writer_copy(m->peer.out, &h, buf_str(&w.buf), w.buf.len, &ignored);
    peer_changed(&m->peer);
}

int place_answer(struct router *r, struct member *m, const struct record *rec, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    struct place_query q;
    if (rec->h.flags & RECORD_MORE) {
        m->peer.want = 0;
        return ROUTER_COLLECT;
    }
    if (rec->len > QUERY_MAX || json_parse(rec->body, rec->len, NULL, &a, &root, err) < 0 ||
        read_query(root, &a, &q) < 0)
        return err_set(err, ERR_PROTO, "PLACE: rank %u must say \"meeting\", \"rank\", \"index\" and \"until\"",
                       m->rank);
    if (m->peer.out->queue.bytes <= r->config.low_mark)
        answer(r, m, &q);
    return 0;
}
