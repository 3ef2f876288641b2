// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/agent_peer.h"

#include "common/base/json_writer.h"
#include "common/base/mem.h"
#include "operator/gateway/archives.h"
#include "operator/gateway/worker_peer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISSED_BEATS = 3, SECOND_CHANCE_MS = 1000 };

struct agent_link {
    struct connection *connection;
    struct connected_agent *agent;
    struct archive_source archive_source;
    struct alarm expiry; // when its token expires
    int64_t heartbeat_ms;
    bool asked; // it was silent, and has one more second
};

// Our own loop may have been slow, and records of the agent may wait in the socket. One more second lets the loop find
// them.
static void on_silence(struct alarm *alarm)
{
    struct connection *c = CONTAINER_OF(alarm, struct connection, alarm);
    struct agent_link *l = c->self;
    struct err err = ERR_INIT;
    if (!l->asked) {
        l->asked = true;
        alarm_set(&c->alarm, &c->gateway->alarms, SECOND_CHANCE_MS, on_silence);
        return;
    }
    err_set(&err, ERR_TIMEOUT, "this agent sent nothing for %lld ms", (long long)(l->heartbeat_ms * MISSED_BEATS));
    connection_close(c, FRAME_CLOSE_POLICY, &err);
}

static void listen_on(struct connection *c)
{
    struct agent_link *l = c->self;
    l->asked = false;
    alarm_set(&c->alarm, &c->gateway->alarms, MAX(l->heartbeat_ms * MISSED_BEATS - SECOND_CHANCE_MS, l->heartbeat_ms),
              on_silence);
}

static void on_expired(struct alarm *alarm)
{
    struct agent_link *l = CONTAINER_OF(alarm, struct agent_link, expiry);
    connection_expired(l->connection);
}

// Takes a piece that a worker of the namespace has asked for.
static int archive_record(struct gateway *g, const struct archive_source *from, const struct record *rec,
                          struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct archive_piece p;
    int r = archive_piece_read(rec->body, rec->len, &a, &p, err);
    if (r == 0)
        worker_archive_piece(g, from->ns, &p);
    return r;
}

static int agent_record(struct connection *c, const struct record *rec, struct err *err)
{
    struct agent_link *l = c->self;
    listen_on(c);
    if (rec->h.type == RECORD_ARCHIVE)
        return archive_record(c->gateway, &l->archive_source, rec, err);
    if (rec->h.type == RECORD_HEARTBEAT && archive_source_learn(&l->archive_source, rec->body, rec->len, err) < 0)
        return err->code;
    return agents_record(c->gateway->config.agents, l->agent, rec, err);
}

static void agent_end(struct connection *c)
{
    struct agent_link *l = TAKE_PTR(c->self);
    c->gateway->counters.agents--;
    alarm_clear(&l->expiry, &c->gateway->alarms);
    agents_leave(c->gateway->config.agents, l->agent);
    archive_source_end(&l->archive_source);
    free(l);
}

static const struct peer_role role = {.name = "agent", .record = agent_record, .end = agent_end};

static int on_command(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    return connection_send(owner, type, body, len, err);
}

void agent_close_replaced(struct gateway *g)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_CONFLICT, "a newer connection of this pod has taken its place, or the pod is gone");
    for (struct connection *c; g->config.agents && (c = agents_replaced(g->config.agents));)
        connection_refuse(c, &err);
}

// Admission

int agent_upgrade(struct connection *c, const char *token, struct err *err)
{
    const struct authority *authority = c->gateway->config.authority;
    snprintf(c->name, sizeof c->name, "a worker");
    if (!token)
        return 0; // it is a worker process
    if (!authority->pod)
        return err_set(err, ERR_UNAUTHORIZED, "there are no pods here");
    int r = authority->pod(authority->ctx, token, &c->memory, &c->pod, err);
    if (r == 0)
        snprintf(c->name, sizeof c->name, "the agent of pod %s/%s", c->pod.ns, c->pod.pod);
    return r;
}

static int identify(struct connection *c, struct arena *a, struct agent_identity *ret, struct agent_link *link,
                    struct err *err)
{
    const struct gateway_config *config = &c->gateway->config;
    if (!c->pod.pod)
        return err_set(err, ERR_UNAUTHORIZED, "an agent shows its pod's token: Authorization: Bearer ...");
    if (!config->agents || !config->pod)
        return err_set(err, ERR_FORBIDDEN, "agents cannot connect here");
    return config->pod(config->ctx, &c->pod, a, ret, &link->heartbeat_ms, err);
}

static int send_welcome(struct connection *c, int64_t heartbeat_ms, struct arena *a, struct err *err)
{
    const char *welcome = json_print(a, "{'version':1,'heartbeatMs':%" PRId64 "}", heartbeat_ms);
    return connection_send(c, RECORD_WELCOME, welcome, strlen(welcome), err);
}

int agent_hello(struct connection *c, const struct record *rec, struct err *err)
{
    struct gateway *g = c->gateway;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct agent_identity id = {0};
    struct agent_link *l = xcalloc(1, sizeof *l);
    l->connection = c;
    int r = identify(c, &a, &id, l, err);
    if (r == 0)
        r = agents_join(g->config.agents, &id, rec->body, rec->len, on_command, c, &l->agent, err);
    if (r == 0)
        archive_source_begin(&l->archive_source, c, id.ns);
    if (r == 0 && ((r = archive_source_learn(&l->archive_source, rec->body, rec->len, err)) < 0 ||
                   (r = send_welcome(c, l->heartbeat_ms, &a, err)) < 0)) {
        archive_source_end(&l->archive_source);
        agents_leave(g->config.agents, l->agent);
    }
    if (r == 0)
        connection_owner(c, id.ns);
    if (r < 0) {
        free(l);
        return r;
    }
    g->counters.agents++;
    connection_serve(c, &role, l, ws_session_quota(c->ws));
    listen_on(c);
    agents_welcomed(g->config.agents, l->agent);
    if (c->pod.expires_ms)
        alarm_set(&l->expiry, &g->alarms, MAX((int64_t)0, c->pod.expires_ms - clock_wall_ms(loop_clock(g->loop))),
                  on_expired);
    agent_close_replaced(g);
    return 0;
}
