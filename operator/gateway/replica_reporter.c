// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/replica_reporter.h"

#include "common/base/json.h"
#include "common/base/json_writer.h"
#include "common/base/map.h"
#include "common/base/mem.h"
#include "common/base/rand.h"
#include "common/wire/error_body.h"
#include "common/wire/record_reader.h"
#include "common/ws/ws_client.h"
#include "common/ws/ws_replicas.h"
#include "operator/agents/replica_reports.h"
#include "operator/gateway/replica.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEBOUNCE_MS = 200,
    LOOK_MS = 2 * 60 * 1000, // a new replica connects to this one, which then looks at once
    RETRY_FIRST_MS = 500,
    RETRY_MAX_MS = 5000,
    REFUSED_MAX_MS = 60 * 1000,
    PING_MS = 10 * 1000, // the kernel sends no keepalive while a heartbeat waits for its acknowledgement
    NEWS_BYTES = REPLICA_REPORT_BODY_MAX / 4, // after so many a record has enough; one more group fits in any case
    BODY_MAX = 64 * 1024,
    QUEUE_MAX = 16 * 1024 * 1024,
};

struct news {                // changes that were not reported yet
    struct map pods, groups; // keys: UIDs; the values are unused
};

struct replica_link {
    struct replica_reporter *reporter;
    char *address;
    struct ws_client *client; // NULL while it waits for the next attempt
    struct record_reader reader;
    struct loop_timer *retry_timer, *beat_timer;
    int64_t backoff_ms;
    bool up, self, whole; // self: the other end is this process; whole: it has reported nothing yet
    struct news news;
};

struct replica_reporter {
    struct replica_reporter_config config;
    char *name, *instance, *proof;
    struct rand rand;
    struct ws_replicas *replicas;
    struct loop_timer *timer;
};

// The content of reports

static void news_done(struct news *n)
{
    map_done(&n->pods);
    map_done(&n->groups);
    *n = (struct news){0};
}

static bool news_any(const struct news *n)
{
    return n->pods.used || n->groups.used;
}

// The key is valid as long as its entry.
static const char *first_of(const struct map *m)
{
    const char *key = NULL;
    size_t i = 0;
    (void)map_next(m, &i, &key, NULL);
    return key;
}

static void write_pod(const struct replica_reporter *l, const char *uid, struct json_writer *w)
{
    const struct agent_identity *id = agents_sight(l->config.agents, uid);
    if (!id)
        writer_print(w, NULL, "{'pod':%s,'gone':true}", uid);
    else if (id->of_placementgroup)
        writer_print(w, NULL, "{'pod':%s,'namespace':%s,'owner':%s,'shared':true}", uid, id->ns, id->group);
    else
        writer_print(w, NULL, "{'pod':%s,'namespace':%s,'owner':%s}", uid, id->ns, id->group);
}

static uint32_t attempt_of(const struct group *g, uint32_t rank)
{
    const struct member *m = group_member_at(g, rank);
    return m ? m->attempt : 0;
}

static void write_group(const struct replica_reporter *l, const char *uid, struct json_writer *w)
{
    const struct group *g = router_group(l->config.router, uid);
    uint32_t world = g ? g->world : 0;
    size_t n = 0;
    writer_object(w, NULL);
    writer_str(w, "group", uid);
    writer_list(w, "ranks");
    for (uint32_t first = 0, last; first < world && n < REPLICA_REPORT_RANGES_MAX; first = last + 1) {
        uint32_t attempt = attempt_of(g, first);
        last = first;
        while (last + 1 < world && attempt_of(g, last + 1) == attempt)
            last++;
        if (!attempt)
            continue;
        writer_print(w, NULL, "[%" PRId64 ",%" PRId64 ",%" PRId64 "]", (int64_t)attempt, (int64_t)first, (int64_t)last);
        n++;
    }
    writer_list_end(w);
    writer_object_end(w);
}

static void write_news(struct replica_link *k, struct json_writer *w)
{
    const struct replica_reporter *l = k->reporter;
    writer_object(w, NULL);
    if (k->whole)
        writer_bool(w, "whole", true);
    writer_list(w, "agents");
    for (const char *uid; w->buf.len < NEWS_BYTES && (uid = first_of(&k->news.pods)); map_del(&k->news.pods, uid))
        write_pod(l, uid, w);
    writer_list_end(w);
    writer_list(w, "groups");
    for (const char *uid; w->buf.len < NEWS_BYTES && (uid = first_of(&k->news.groups)); map_del(&k->news.groups, uid))
        write_group(l, uid, w);
    writer_list_end(w);
    writer_object_end(w);
    k->whole = false;
}

// Connections

static void drop(struct replica_link *k, const struct err *err)
{
    struct replica_reporter *l = k->reporter;
    bool was_up = k->up, refused = err->code == ERR_UNAUTHORIZED || err->code == ERR_FORBIDDEN;
    k->up = false;
    ws_client_free(TAKE_PTR(k->client));
    record_reader_done(&k->reader);
    loop_timer_disarm(k->beat_timer);
    news_done(&k->news);
    loop_timer_arm(k->retry_timer, rand_range(&l->rand, k->backoff_ms / 3, k->backoff_ms));
    k->backoff_ms = MIN(2 * k->backoff_ms, (int64_t)(refused ? REFUSED_MAX_MS : RETRY_MAX_MS));
    if (was_up)
        ws_replicas_look_soon(l->replicas);
}

static void send(struct replica_link *k, enum record_type type, const char *body, size_t len)
{
    const struct record_header h = {.type = (uint8_t)type, .rank = RECORD_GROUP};
    struct err err = ERR_INIT;
    if (ws_client_record_copy(k->client, &h, body, len, &err) < 0)
        drop(k, &err);
}

static void tell_later(struct replica_reporter *l)
{
    if (!loop_timer_armed(l->timer))
        loop_timer_arm(l->timer, DEBOUNCE_MS);
}

// Sends one record to each replica. The next one follows in the next round, if the other side reads them.
static void tell(struct replica_link *k)
{
    if (!k->up || k->self || (!k->whole && !news_any(&k->news)))
        return;
    if (ws_client_queued(k->client) < WS_LOW_MARK) {
        _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
        write_news(k, &w);
        send(k, RECORD_REPORT, w.buf.data, w.buf.len);
    }
    if (news_any(&k->news))
        tell_later(k->reporter);
}

static void on_timer(void *ctx)
{
    struct replica_reporter *l = ctx;
    for (size_t i = 0; i < ws_replicas_count(l->replicas); i++)
        tell(ws_replicas_at(l->replicas, i));
}

static void on_beat(void *ctx)
{
    struct replica_link *k = ctx;
    loop_timer_arm(k->beat_timer, REPLICA_BEAT_MS);
    send(k, RECORD_HEARTBEAT, "{}", 2);
}

static void add_pod(void *ctx, const char *uid)
{
    struct replica_link *k = ctx;
    map_set(&k->news.pods, uid, k);
}

static void add_group(void *ctx, const struct group *g)
{
    struct replica_link *k = ctx;
    if (g->n_connected)
        map_set(&k->news.groups, g->uid, k);
}

static void on_welcome(struct replica_link *k, const struct record *rec)
{
    struct replica_reporter *l = k->reporter;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct json *root;
    struct err err = ERR_INIT;
    k->up = k->whole = true;
    k->backoff_ms = RETRY_FIRST_MS;
    if (json_parse(rec->body, rec->len, NULL, &a, &root, &err) == 0)
        k->self = json_str_is(json_get(root, "instance"), l->instance);
    if (k->self)
        return;
    loop_timer_arm(k->beat_timer, REPLICA_BEAT_MS);
    agents_each(l->config.agents, add_pod, k);
    router_each_group(l->config.router, add_group, k);
    tell_later(l);
}

// Other records are for newer versions.
static void on_record(struct replica_link *k, const struct record *rec)
{
    struct err why = ERR_INIT;
    if (!k->up && rec->h.type == RECORD_WELCOME) {
        on_welcome(k, rec);
    } else if (rec->h.type == RECORD_ERROR) {
        error_body_read(rec->body, rec->len, &why);
        drop(k, &why);
    }
}

static void on_data(void *ctx, const char *data, size_t len, bool end)
{
    struct replica_link *k = ctx;
    struct record rec;
    struct err err = ERR_INIT;
    int r = 0;
    while (k->client && (r = record_reader_next(&k->reader, &data, &len, &rec, &err)) > 0)
        on_record(k, &rec);
    if (k->client && r == 0 && end)
        r = record_reader_end(&k->reader, &err);
    if (k->client && r < 0)
        drop(k, &err);
}

static void on_open(void *ctx, const char *subprotocol)
{
    struct replica_link *k = ctx;
    const struct replica_reporter *l = k->reporter;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    (void)subprotocol;
    const char *hello = json_print(&a, "{'role':'replica','version':1,'replica':%s,'instance':%s,'proof':%s}", l->name,
                                   l->instance, l->proof);
    send(k, RECORD_HELLO, hello, strlen(hello));
}

static void on_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    (void)code, (void)reason;
    drop(ctx, err);
}

static void dial(void *ctx)
{
    struct replica_link *k = ctx;
    const struct ws_client_config config = {.address = k->address,
                                            .path = WS_REPLICAS_PATH,
                                            .subprotocols = RECORD_SUBPROTOCOL,
                                            .tls = ws_replicas_tls(k->reporter->replicas),
                                            .server_name = ws_replicas_host(k->reporter->replicas),
                                            .ping_ms = PING_MS,
                                            .max_message = BODY_MAX,
                                            .max_queue = QUEUE_MAX,
                                            .on_open = on_open,
                                            .on_data = on_data,
                                            .on_close = on_close,
                                            .ctx = k};
    struct err err = ERR_INIT;
    record_reader_init(&k->reader, &(struct record_reader_config){.whole = true, .max_body = BODY_MAX, .max_open = 8});
    k->client = ws_client_new(k->reporter->config.loop, &config, &err);
    if (!k->client)
        drop(k, &err);
}

static void *add_link(void *ctx, const char *address)
{
    struct replica_reporter *l = ctx;
    struct replica_link *k = xcalloc(1, sizeof *k);
    k->reporter = l;
    k->address = xstrdup(address);
    k->backoff_ms = RETRY_FIRST_MS;
    k->retry_timer = loop_timer_new(l->config.loop, dial, k);
    k->beat_timer = loop_timer_new(l->config.loop, on_beat, k);
    loop_timer_arm(k->retry_timer, 0);
    return k;
}

static bool link_is_up(void *ctx, void *link)
{
    (void)ctx;
    return ((const struct replica_link *)link)->up;
}

static void remove_link(void *ctx, void *link)
{
    struct replica_link *k = link;
    (void)ctx;
    if (k->client)
        record_reader_done(&k->reader);
    ws_client_free(k->client);
    loop_timer_free(k->retry_timer);
    loop_timer_free(k->beat_timer);
    news_done(&k->news);
    free(k->address);
    free(k);
}

static void on_unresolved(void *ctx, const struct err *err)
{
    const struct replica_reporter *l = ctx;
    if (l->config.alone)
        l->config.alone(l->config.ctx, err);
}

struct replica_reporter *replica_reporter_new(const struct replica_reporter_config *config, struct err *err)
{
    struct replica_reporter *l = xcalloc(1, sizeof *l);
    l->config = *config;
    l->name = xstrdup(config->name);
    l->instance = xstrdup(config->instance);
    l->proof = xstrdup(config->proof);
    rand_seed(&l->rand, config->seed);
    l->timer = loop_timer_new(config->loop, on_timer, l);
    l->replicas = ws_replicas_new(config->loop,
                                  &(struct ws_replicas_config){.url = config->url,
                                                               .ca_pem = config->ca_pem,
                                                               .look_ms = LOOK_MS,
                                                               .patient = true,
                                                               .add = add_link,
                                                               .up = link_is_up,
                                                               .remove = remove_link,
                                                               .unresolved = on_unresolved,
                                                               .ctx = l},
                                  err);
    if (l->replicas)
        return l;
    replica_reporter_free(l);
    return NULL;
}

void replica_reporter_free(struct replica_reporter *l)
{
    if (!l)
        return;
    ws_replicas_free(l->replicas);
    loop_timer_free(l->timer);
    free(l->name);
    free(l->instance);
    free(l->proof);
    free(l);
}

void replica_reporter_look(struct replica_reporter *l)
{
    if (l)
        ws_replicas_look_soon(l->replicas);
}

static void note(struct replica_reporter *l, const char *uid, bool pod)
{
    for (size_t i = 0; l && i < ws_replicas_count(l->replicas); i++) {
        struct replica_link *k = ws_replicas_at(l->replicas, i);
        if (!k->up || k->self)
            continue;
        map_set(pod ? &k->news.pods : &k->news.groups, uid, k);
        tell_later(l);
    }
}

void replica_reporter_agent(struct replica_reporter *l, const char *pod_uid)
{
    note(l, pod_uid, true);
}

void replica_reporter_group(struct replica_reporter *l, const char *group_uid)
{
    note(l, group_uid, false);
}
