// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_sharing.h"

#include "common/base/mem.h"

static void send(void *ctx, enum record_type type, const char *body, size_t len)
{
    struct ws_sharing *s = ctx;
    const struct record_header h = {.type = (uint8_t)type, .rank = RECORD_GROUP};
    struct err ignored = ERR_INIT; // a client that takes nothing any more is about to end
    (void)ws_client_record_copy(s->client, &h, body, len, &ignored);
}

static struct area *open_area(void *ctx, int fd, size_t size, struct err *err)
{
    const struct ws_sharing *s = ctx;
    return memory_open(ws_client_peer(s->client), fd, size, s->own, err);
}

bool ws_sharing_begin(struct ws_sharing *s, const struct json *welcome, struct ws_client *client,
                      struct record_reader *reader)
{
    int64_t probe;
    if (!json_i64(json_get(welcome, "memory"), &probe) || !memory_reaches(ws_client_peer(client), probe))
        return false;
    s->client = client;
    share_init(&s->share, &(struct share_config){.send = send, .open = open_area, .ctx = s});
    ws_client_records(client)->share = &s->share;
    reader->config.share = &s->share;
    return true;
}

struct memory *ws_sharing_memory(struct memory **own)
{
    struct err unshared = ERR_INIT;
    if (!*own)
        *own = memory_new(WS_SHARING_MEMORY, &unshared);
    return *own;
}

void ws_sharing_offer(struct ws_sharing *s, struct memory **own)
{
    if (ws_sharing_memory(own))
        share_offer(&s->share, memory_area(*own));
}

void ws_sharing_end(struct ws_sharing *s, struct memory **own)
{
    if (!s->client)
        return;
    if (*own && share_has_lent(&s->share, memory_area(*own)))
        memory_free(TAKE_PTR(*own));
    ws_client_records(s->client)->share = NULL;
    share_done(&s->share);
    s->client = NULL;
}

int ws_sharing_record(struct ws_sharing *s, const struct record *rec, struct err *err)
{
    int r = share_record(&s->share, rec->h.type, rec->body, rec->len, err);
    s->share.lends = s->share.lends || r == 1;
    return MIN(r, 0);
}
