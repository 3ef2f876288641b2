// SPDX-License-Identifier: Apache-2.0
#include "operator/proxy/place.h"

#include "common/base/json_writer.h"
#include "operator/proxy/group.h"

// Of the same attempt: another one has another secret.
static const struct member *peer_of(const struct member *m, int64_t rank)
{
    const struct group *g = m->group;
    const struct member *peer = g && rank >= 0 && rank < g->world ? g->ranks[rank].member : NULL;
    return peer && peer->attempt == m->attempt ? peer : NULL;
}

static void answer(struct member *m, int64_t rank)
{
    const struct member *peer = peer_of(m, rank);
    const struct record_header h = {.rank = m->rank, .type = RECORD_PLACE};
    struct err ignored = ERR_INIT;
    struct json_writer w;
    char at[96];
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_i64(&w, "rank", rank);
    if (peer && member_at(peer, at, sizeof at))
        writer_str(&w, "at", at);
    writer_object_end(&w);
    (void)record_writer_copy(m->peer.out, &h, buf_str(&w.buf), w.buf.len, &ignored); // else it asks again
    peer_changed(&m->peer);
    writer_done(&w);
}

int place_answer(struct router *r, struct member *m, const struct record *rec, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct json *root;
    int64_t rank;
    if (rec->h.flags & RECORD_MORE) {
        m->peer.want = 0;
        return ROUTER_COLLECT;
    }
    int code = json_parse(rec->body, rec->len, NULL, &a, &root, err);
    if (code < 0 || !json_i64(json_get(root, "rank"), &rank))
        code = err_set(err, ERR_PROTO, "PLACE: rank %u does not say which \"rank\" it looks for", m->rank);
    else if (m->peer.out->bytes <= r->config.low_mark)
        answer(m, rank);
    arena_done(&a);
    return code;
}
