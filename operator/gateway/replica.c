// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/replica.h"

#include "common/base/json_writer.h"
#include "common/base/str.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

static void on_silence(struct alarm *alarm)
{
    struct connection *c = CONTAINER_OF(alarm, struct connection, alarm);
    struct err err = ERR_INIT;
    err_set(&err, ERR_TIMEOUT, "this replica sent nothing for %d ms", REPLICA_BEAT_MS * REPLICA_BEATS_MISSED);
    connection_close(c, FRAME_CLOSE_POLICY, &err);
}

// A replica does not report to itself.
static void listen_on(struct connection *c)
{
    if (c->self)
        alarm_set(&c->alarm, &c->gateway->alarms, REPLICA_BEAT_MS * REPLICA_BEATS_MISSED, on_silence);
}

// `self` is NULL if the replica is connected to itself.
static int replica_record(struct connection *c, const struct record *rec, struct err *err)
{
    struct replica_reports *s = c->gateway->config.reports;
    listen_on(c);
    if (c->self && rec->h.type == RECORD_REPORT)
        return replica_reports_take(s, c->self, rec->body, rec->len, err);
    if (rec->h.type != RECORD_HEARTBEAT)
        return err_set(err, ERR_PROTO, "a replica must not send %s records", record_type_name(rec->h.type));
    if (c->self)
        replica_reports_alive(s, c->self);
    return 0;
}

static void replica_end(struct connection *c)
{
    if (c->self)
        replica_reports_leave(c->gateway->config.reports, TAKE_PTR(c->self));
}

static const struct peer_role role = {.name = "replica", .record = replica_record, .end = replica_end};

static int check_proof(const struct connection *c, const struct hello *h, struct err *err)
{
    const struct authority *authority = c->gateway->config.authority;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    if (!c->gateway->config.reports || !authority->replica_proof)
        return err_set(err, ERR_FORBIDDEN, "other replicas cannot connect here");
    if (str_empty(h->replica) || str_empty(h->instance) || str_empty(h->proof))
        return err_set(err, ERR_INVALID, "HELLO: a replica says \"replica\", \"instance\" and \"proof\"");
    const char *wanted = authority->replica_proof(authority->ctx, h->replica, h->instance, &a);
    if (!wanted)
        return err_set(err, ERR_UNAVAILABLE, "the keys of this install have not been read yet: try again");
    // The length is not a secret. The position where two texts differ is one.
    if (strlen(h->proof) != strlen(wanted) || CRYPTO_memcmp(h->proof, wanted, strlen(wanted)) != 0)
        return err_set(err, ERR_UNAUTHORIZED, "HELLO: this replica has another install key than this operator");
    return 0;
}

static int send_welcome(struct connection *c, struct err *err)
{
    const struct gateway_config *config = &c->gateway->config;
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const char *welcome = json_print(&a, "{'version':1,'replica':%s,'instance':%s,'heartbeatMs':%" PRId64 "}",
                                     config->replica, config->instance, (int64_t)REPLICA_BEAT_MS);
    return connection_send(c, RECORD_WELCOME, welcome, strlen(welcome), err);
}

int replica_hello(struct connection *c, const struct hello *h, struct err *err)
{
    const struct gateway_config *config = &c->gateway->config;
    struct reporting_replica *replica = NULL;
    int r = check_proof(c, h, err);
    if (r == 0)
        r = send_welcome(c, err);
    // A replica that looks up the advertised name also finds itself.
    if (r == 0 && !str_eq(h->instance, config->instance))
        r = replica_reports_join(config->reports, h->replica, &replica, err);
    if (r < 0)
        return r;
    snprintf(c->name, sizeof c->name, "replica %.200s", h->replica);
    ws_session_owner(c->ws, "/replicas", 1); // no namespace has this name
    connection_serve(c, &role, replica, ws_session_quota(c->ws));
    listen_on(c);
    return 0;
}
