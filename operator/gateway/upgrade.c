// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/upgrade.h"

#include "common/base/str.h"
#include "common/wire/handshake.h"
#include "operator/gateway/agent_peer.h"
#include "operator/gateway/client_peer.h"
#include "operator/gateway/replica.h"
#include "operator/gateway/worker_peer.h"

#include <stdio.h>

enum { HELLO_MAX = 256 << 10 };

static int hello_as(struct connection *c, const struct hello *h, const struct record *rec, struct err *err)
{
    if (c->target.kind == TARGET_CALLS)
        return str_eq(h->role, "controller")
                   ? client_hello(c, h, err)
                   : err_set(err, ERR_INVALID, "HELLO: role %.40s: agents and workers connect to /v1/connect", h->role);
    if (str_eq(h->role, "agent"))
        return agent_hello(c, rec, err);
    if (str_eq(h->role, "worker"))
        return worker_hello(c, h, rec, err);
    if (str_eq(h->role, "replica"))
        return replica_hello(c, h, err);
    return err_set(err, ERR_INVALID, "HELLO: role %.40s: clients connect to /v1/namespaces/NAMESPACE/workergroups/NAME",
                   h->role);
}

static int take_hello(struct connection *c, const struct record *rec, struct err *err)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct hello h;
    struct err why = ERR_INIT;
    if (rec->h.type != RECORD_HELLO)
        return err_set(err, ERR_PROTO, "the first record must be HELLO, not %s", record_type_name(rec->h.type));
    alarm_clear(&c->alarm, &c->gateway->alarms);
    if (hello_decode(rec->body, rec->len, &a, &h, &why) < 0 || hello_as(c, &h, rec, &why) < 0)
        connection_refuse(c, &why);
    return 0;
}

static int check_upgrade(const struct gateway *g, const struct target *t, const char *token, struct ws_request *r,
                         struct err *err)
{
    bool records = handshake_offers(ws_request_header(r, "sec-websocket-protocol"), RECORD_SUBPROTOCOL);
    bool open = admission_is_open(g, r);
    if (admission_check(g, r, err) < 0)
        return err->code;
    if (t->kind == TARGET_CA)
        return err_set(err, ERR_NOT_FOUND, "this path is for GET");
    if (t->kind == TARGET_CONNECT && !records) {
        err->http_status = 426;
        return err_set(err, ERR_PROTO, "agents and workers speak the subprotocol " RECORD_SUBPROTOCOL);
    }
    if (t->kind == TARGET_CONNECT && g->config.authority->open && !open)
        return err_set(err, ERR_FORBIDDEN, "the processes of a local run connect to its Unix socket, not to this port");
    if (t->kind == TARGET_CALLS && !token && !open && !records)
        return admission_no_token(err);
    return 0;
}

static int connect_peer(struct gateway *g, struct ws_session *ws, const struct target *t, const char *token,
                        struct ws_request *r, struct err *err)
{
    struct connection *c = connection_new(g, ws, t, HELLO_MAX, take_hello);
    c->open = admission_is_open(g, r);
    snprintf(c->address, sizeof c->address, "%s", ws_request_peer(r));
    int code = t->kind == TARGET_CONNECT ? agent_upgrade(c, token, err) : client_upgrade(c, token, err);
    if (code == 0)
        ws_session_set_user(ws, c);
    else
        connection_free(c);
    return code;
}

int upgrade_accept(void *gateway, struct ws_session *ws, struct ws_request *r, struct err *err)
{
    struct gateway *g = gateway;
    struct target target;
    const char *token = admission_token(g, r);
    int code = target_parse(ws_request_path(r), &target, err);
    if (code == 0)
        code = check_upgrade(g, &target, token, r, err);
    if (code == 0)
        code = connect_peer(g, ws, &target, token, r, err);
    if (code < 0)
        err->http_status = gateway_refused(g, r, err);
    return code;
}

static void on_hello_late(struct alarm *a)
{
    struct connection *c = CONTAINER_OF(a, struct connection, alarm);
    struct err err = ERR_INIT;
    err_set(&err, ERR_PROTO, "no HELLO within %lld ms", (long long)c->gateway->config.hello_ms);
    connection_close(c, FRAME_CLOSE_POLICY, &err);
}

void upgrade_open(void *gateway, struct ws_session *ws)
{
    struct connection *c = ws_session_user(ws);
    (void)gateway;
    struct err err = ERR_INIT;
    c->json = str_eq(ws_session_subprotocol(ws), RECORD_SUBPROTOCOL_JSON);
    c->state = CONNECTION_AWAITS_HELLO;
    alarm_set(&c->alarm, &c->gateway->alarms, c->gateway->config.hello_ms, on_hello_late);
    if (c->target.kind == TARGET_CALLS) {
        client_open(c);
    } else if (c->json) { // it was the first of several that the peer offered
        err_set(&err, ERR_PROTO, "agents and workers speak the subprotocol " RECORD_SUBPROTOCOL " and offer no other");
        connection_close(c, FRAME_CLOSE_UNSUPPORTED, &err);
    }
}
