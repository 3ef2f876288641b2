// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/sharing.h"

#include "common/ws/memory.h"

static void send(void *ctx, enum record_type type, const char *body, size_t len)
{
    struct connection *c = ctx;
    struct err ignored = ERR_INIT; // one that takes nothing any more is about to end
    connection_send(c, (uint8_t)type, body, len, &ignored);
}

static struct area *open_area(void *ctx, int fd, size_t size, struct err *err)
{
    struct connection *c = ctx;
    return memory_open(ws_session_peer(c->ws), fd, size, err);
}

void sharing_begin(struct connection *c, struct json_writer *w)
{
    struct gateway *g = c->gateway;
    if (!g->probe || !ws_session_peer(c->ws))
        return;
    share_init(&c->share, &(struct share_config){.send = send, .open = open_area, .ctx = c});
    ws_session_records(c->ws)->share = &c->share;
    c->shares = true;
    writer_i64(w, "memory", memory_area(g->probe)->fd);
}

void sharing_end(struct connection *c)
{
    if (!c->shares)
        return;
    c->shares = false;
    ws_session_records(c->ws)->share = NULL;
    share_done(&c->share);
}

int sharing_record(struct connection *c, const struct record *rec, struct err *err)
{
    int r = share_record(&c->share, rec->h.type, rec->body, rec->len, err);
    if (r == 0 && rec->h.type == RECORD_MEMORY)
        c->share.lends = true; // it has tried
    return MIN(r, 0);
}
