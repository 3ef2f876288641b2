// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/connection.h"

#include "common/base/log.h"
#include "common/base/str.h"
#include "common/wire/handshake.h"
#include "operator/gateway/agent.h"
#include "operator/gateway/browser.h"
#include "operator/gateway/client.h"
#include "operator/gateway/group_changes.h"
#include "operator/gateway/replica.h"
#include "operator/gateway/sharing.h"
#include "operator/gateway/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELLO_MAX = 256 << 10, HELD_MAX = 256 << 10 };

struct unread {
    struct list link;
    bool text, end;
    size_t len;
    char data[];
};

// While calls are taken one may be on its way here.
void connection_go_if_done(struct connection *c)
{
    if (c->gateway->router.stopping && c->role && list_empty(&c->unread) && c->role->idle && c->role->idle(c))
        connection_goodbye(c);
}

static void on_changed(struct outlet *o, struct peer *p)
{
    struct connection *c = CONTAINER_OF(o, struct connection, outlet);
    if (c->role)
        c->role->changed(c, p);
    connection_go_if_done(c);
}

// The upgrade

static int check_upgrade(const struct gateway *g, const struct target *t, const char *token, struct ws_request *r,
                         struct err *err)
{
    bool records = handshake_offers(ws_request_header(r, "sec-websocket-protocol"), RECORD_SUBPROTOCOL);
    bool open = admission_is_open(g, r);
    if (browser_check(g->config.authority->open && !open, ws_request_header(r, "host"), ws_request_header(r, "origin"),
                      err) < 0)
        return err->code;
    if (g->stopping)
        return err_set(err, ERR_UNAVAILABLE, "this operator is stopping; connect to another one");
    if (t->kind == TARGET_CA)
        return err_set(err, ERR_NOT_FOUND, "this path is for GET");
    if (t->kind == TARGET_CONNECT && !records) {
        err->http_status = 426;
        return err_set(err, ERR_PROTO, "agents and workers speak the subprotocol " RECORD_SUBPROTOCOL);
    }
    if (t->kind == TARGET_CONNECT && g->config.authority->open && !open)
        return err_set(err, ERR_FORBIDDEN, "the processes of a local run connect to its Unix socket, not to this port");
    if (t->kind == TARGET_CALLS && !token && !open && !records)
        return err_set(err, ERR_UNAUTHORIZED, "a token is needed: Authorization: Bearer ...");
    return 0;
}

int connection_upgrade(struct gateway *g, struct ws_session *ws, struct ws_request *r, struct err *err)
{
    struct target target;
    const char *token = admission_token(g, r);
    int code = target_parse(ws_request_path(r), &target, err);
    if (code == 0)
        code = check_upgrade(g, &target, token, r, err);
    if (code < 0)
        goto refused;
    struct connection *c = xcalloc(1, sizeof *c);
    *c = (struct connection){
        .outlet = {.changed = on_changed, .admission = &c->admission, .ns = c->target.ns, .lifetime = c},
        .gateway = g,
        .ws = ws,
        .target = target};
    c->token = token ? xstrdup(token) : NULL;
    c->open = admission_is_open(g, r);
    snprintf(c->address, sizeof c->address, "%s", ws_request_peer(r));
    list_init(&c->unread);
    list_init(&c->behind);
    list_append(&g->connections, &c->link);
    record_reader_init(&c->reader,
                       &(struct record_reader_config){.whole = true, .max_body = HELLO_MAX, .quota = g->strangers});
    code = target.kind == TARGET_CONNECT ? agent_upgrade(c, err) : client_upgrade(c, err);
    if (code == 0) {
        ws_session_set_user(ws, c);
        return 0;
    }
    connection_free(c);
refused:
    if (!err->http_status)
        err->http_status = gateway_http_status(code);
    g->counters.refused++;
    gateway_log_refusal(g, ws_request_path(r), ws_request_peer(r), err);
    return code;
}

// Talking

int connection_send(struct connection *c, uint8_t type, const char *body, size_t len, struct err *err)
{
    const struct record_header h = {.type = type, .rank = RECORD_GROUP};
    return ws_session_record_copy(c->ws, &h, body, len, err);
}

bool connection_in_body(const struct connection *c)
{
    return record_reader_unfinished(&c->reader) != UINT64_MAX;
}

static void drop_unread(struct connection *c)
{
    for (struct list *l; (l = list_pop(&c->unread));)
        free(CONTAINER_OF(l, struct unread, link));
    c->held_bytes = 0;
    list_remove(&c->behind);
}

static void detach(struct connection *c)
{
    struct gateway *g = c->gateway;
    const struct role *role = TAKE_PTR(c->role);
    if (c->state == CONNECTION_ENDED)
        return;
    c->state = CONNECTION_ENDED;
    record_reader_done(&c->reader); // before its quota goes
    if (role)
        role->end(c);
    sharing_end(c);
    group_changes_ended(g, &c->outlet, c->done);
    admission_done(&c->admission);
    admission_done(&c->review);
    alarm_clear(&c->alarm, g);
    drop_unread(c);
}

// Of a group that is restarted or deleted every rank goes: the group's own event says it once.
static void log_end(struct connection *c, const struct err *err)
{
    bool usual = c->state == CONNECTION_SERVED && (err->code == ERR_CONFLICT || err->code == ERR_GONE);
    if (usual)
        log_debug("a peer was sent away", "who", c->name, "peer", c->address, "error", err->msg, NULL);
    else if (err->code)
        gateway_log_refusal(c->gateway, c->name, c->address, err);
}

void connection_close(struct connection *c, unsigned code, const struct err *err)
{
    struct buf body = BUF_INIT(8192);
    struct err ignored = ERR_INIT;
    if (c->state == CONNECTION_ENDED)
        return;
    log_end(c, err);
    c->gateway->counters.refused += c->state != CONNECTION_SERVED;
    if (err->code && c->state != CONNECTION_UPGRADED && !c->json) {
        gateway_error_body(err, &body);
        connection_send(c, RECORD_ERROR, buf_str(&body), body.len, &ignored);
    }
    buf_done(&body);
    detach(c);
    ws_session_close(c->ws, code, err->msg);
}

void connection_refuse(struct connection *c, const struct err *err)
{
    connection_close(c, gateway_close_code(err->code), err);
}

void connection_expired(struct connection *c)
{
    struct err err = ERR_INIT;
    err_set(&err, ERR_UNAUTHORIZED, "the token of this connection has expired; connect with a new one");
    connection_close(c, GATEWAY_CLOSE_EXPIRED, &err);
}

static void tell_goodbye(struct connection *c)
{
    static const char body[] = "{\"reason\":\"this operator is stopping\"}";
    struct err ignored = ERR_INIT;
    if (c->state == CONNECTION_SERVED && !c->json && !c->told) // not before the WELCOME
        connection_send(c, RECORD_GOODBYE, body, sizeof body - 1, &ignored);
    c->told = true;
}

void connection_drain(struct connection *c)
{
    if (!c->role)
        connection_goodbye(c);
    else if (c->role->idle)
        tell_goodbye(c);
}

void connection_goodbye(struct connection *c)
{
    if (c->state == CONNECTION_ENDED)
        return;
    tell_goodbye(c);
    detach(c);
    ws_session_close(c->ws, FRAME_CLOSE_GOING_AWAY, "this operator is stopping");
}

// HELLO

static void on_hello_late(struct alarm *a)
{
    struct connection *c = CONTAINER_OF(a, struct connection, alarm);
    struct err err = ERR_INIT;
    err_set(&err, ERR_PROTO, "no HELLO within %lld ms", (long long)c->gateway->config.hello_ms);
    connection_close(c, FRAME_CLOSE_POLICY, &err);
}

static int greet_as(struct connection *c, const struct hello *h, const struct record *rec, struct err *err)
{
    if (c->target.kind == TARGET_CALLS)
        return str_eq(h->role, "controller")
                   ? client_greet(c, h, err)
                   : err_set(err, ERR_INVALID, "HELLO: role %.40s: agents and workers connect to /v1/connect", h->role);
    if (str_eq(h->role, "agent"))
        return agent_greet(c, rec, err);
    if (str_eq(h->role, "worker"))
        return worker_greet(c, h, rec, err);
    if (str_eq(h->role, "replica"))
        return replica_greet(c, h, err);
    return err_set(err, ERR_INVALID, "HELLO: role %.40s: clients connect to /v1/namespaces/NAMESPACE/workergroups/NAME",
                   h->role);
}

// Returns 0 also where the peer was refused.
static int take_hello(struct connection *c, const struct record *rec, struct err *err)
{
    struct arena a = ARENA_INIT;
    struct hello h;
    struct err why = ERR_INIT;
    if (rec->h.type != RECORD_HELLO)
        return err_set(err, ERR_PROTO, "the first record must be HELLO, not %s", record_type_name(rec->h.type));
    alarm_clear(&c->alarm, c->gateway);
    if (hello_decode(rec->body, rec->len, &a, &h, &why) < 0 || greet_as(c, &h, rec, &why) < 0)
        connection_refuse(c, &why);
    arena_done(&a);
    return 0;
}

void connection_open(struct connection *c)
{
    struct err err = ERR_INIT;
    c->json = str_eq(ws_session_subprotocol(c->ws), RECORD_SUBPROTOCOL_JSON);
    c->state = CONNECTION_GREETED;
    alarm_set(&c->alarm, c->gateway, c->gateway->config.hello_ms, on_hello_late);
    if (c->target.kind == TARGET_CALLS) {
        client_open(c);
    } else if (c->json) { // of several that it offered, this was the first
        err_set(&err, ERR_PROTO, "agents and workers speak the subprotocol " RECORD_SUBPROTOCOL " and offer no other");
        connection_close(c, FRAME_CLOSE_UNSUPPORTED, &err);
    }
}

// What comes in

static void keep(struct connection *c, struct list *at, bool text, const char *data, size_t len, bool end)
{
    struct unread *h = xmalloc(sizeof *h + len);
    *h = (struct unread){.text = text, .end = end, .len = len};
    if (len)
        memcpy(h->data, data, len);
    list_insert_before(at, &h->link);
    c->held_bytes += len;
}

// Only as much as was read already when the reading was stopped.
static void postpone(struct connection *c, bool text, const char *data, size_t len, bool end)
{
    struct err err = ERR_INIT;
    if (len > HELD_MAX - c->held_bytes) {
        err_set(&err, ERR_LIMIT, "too much was sent before the WELCOME");
        connection_close(c, FRAME_CLOSE_TRY_LATER, &err);
        return;
    }
    keep(c, &c->unread, text, data, len, end);
}

static bool stops(const struct connection *c)
{
    return c->role && c->role->stops && c->role->stops(c);
}

// It was read in the same breath as what came before it.
static void fall_behind(struct connection *c)
{
    ws_session_pause(c->ws);
    if (list_empty(&c->behind))
        list_append(&c->gateway->behind, &c->behind);
}

void connection_read(struct connection *c, bool read)
{
    if (read && list_empty(&c->unread))
        ws_session_resume(c->ws);
    else
        ws_session_pause(c->ws);
}

static int take_record(struct connection *c, struct record *rec, struct err *err)
{
    if (sharing_is(rec))
        return sharing_record(c, rec, err);
    int r = c->role->record(c, rec, err);
    if (r != ROUTER_COLLECT || record_reader_collect(&c->reader, rec, c->gateway->config.max_whole, c->want))
        return r;
    rec->over = true; // there is no room
    return c->role->record(c, rec, err);
}

static void take_data(struct connection *c, const char *data, size_t len, bool end)
{
    struct record rec;
    struct err err = ERR_INIT;
    int got = 0;
    while (c->state == CONNECTION_GREETED || c->state == CONNECTION_SERVED) {
        if (len && stops(c)) {
            keep(c, c->unread.next, false, data, len, end); // before what came behind it
            fall_behind(c);
            return;
        }
        got = record_reader_next(&c->reader, &data, &len, &rec, &err);
        if (got <= 0)
            break;
        got = c->state == CONNECTION_GREETED ? take_hello(c, &rec, &err) : take_record(c, &rec, &err);
        if (got < 0)
            break;
    }
    if (c->state == CONNECTION_ENDED)
        return;
    if (c->state == CONNECTION_WAITING && len) {
        postpone(c, false, data, len, end);
        return;
    }
    if (got == 0 && end && !record_reader_at_boundary(&c->reader))
        got = err_set(&err, ERR_PROTO, "a message that ends inside a record");
    if (got < 0)
        connection_close(c, got == ERR_LIMIT ? FRAME_CLOSE_TOO_BIG : FRAME_CLOSE_PROTOCOL, &err);
    else if (c->role && c->role->after)
        c->role->after(c);
}

static void take(struct connection *c, bool text, const char *data, size_t len, bool end)
{
    struct err err = ERR_INIT;
    if (text != c->json) {
        err_set(&err, ERR_PROTO, "a %s message: %s has others", text ? "text" : "binary",
                ws_session_subprotocol(c->ws));
        connection_close(c, FRAME_CLOSE_UNSUPPORTED, &err);
    } else if (text) {
        c->role->text(c, data, len);
    } else {
        take_data(c, data, len, end);
    }
}

static void take_in_turn(struct connection *c, bool text, const char *data, size_t len, bool end)
{
    if (c->state == CONNECTION_ENDED)
        return;
    if (c->state == CONNECTION_WAITING && text == c->json) {
        postpone(c, text, data, len, end);
    } else if (!list_empty(&c->unread) || (text && stops(c))) {
        keep(c, &c->unread, text, data, len, end);
        fall_behind(c);
    } else {
        take(c, text, data, len, end);
    }
}

bool connection_may_go_on(const struct connection *c)
{
    return !stops(c);
}

void connection_go_on(struct connection *c)
{
    list_remove(&c->behind);
    while (!list_empty(&c->unread) && !stops(c)) {
        struct unread *h = CONTAINER_OF(list_pop(&c->unread), struct unread, link);
        c->held_bytes -= h->len;
        take(c, h->text, h->data, h->len, h->end);
        free(h);
    }
    if (!list_empty(&c->unread))
        fall_behind(c);
    else if (c->role && c->role->after)
        c->role->after(c);
}

void connection_data(struct connection *c, const char *data, size_t len, bool end)
{
    take_in_turn(c, false, data, len, end);
}

char *connection_place(struct connection *c, size_t *ret_room)
{
    return c->state == CONNECTION_SERVED && !c->json && list_empty(&c->unread)
               ? record_reader_place(&c->reader, ret_room)
               : NULL;
}

void connection_message(struct connection *c, bool text, const char *data, size_t len)
{
    take_in_turn(c, text, data, len, true);
}

void connection_drained(struct connection *c)
{
    if (c->role && c->role->after)
        c->role->after(c);
    connection_go_if_done(c);
}

void connection_wait(struct connection *c)
{
    c->state = CONNECTION_WAITING;
    alarm_clear(&c->alarm, c->gateway);
    ws_session_pause(c->ws);
}

void connection_serve(struct connection *c, const struct role *role, void *self, struct quota *quota)
{
    c->state = CONNECTION_SERVED;
    c->role = role;
    c->self = self;
    c->gateway->counters.opened++;
    record_reader_done(&c->reader);
    const struct gateway_config *config = &c->gateway->config;
    record_reader_init(&c->reader,
                       &(struct record_reader_config){.whole = !role->pieces,
                                                      .max_body = role->pieces ? config->max_body : config->max_whole,
                                                      .share = c->shares ? &c->share : NULL,
                                                      .quota = quota});
    ws_session_resume(c->ws);
    log_debug("connected", "role", role->name, "who", c->name, "peer", c->address, NULL);
    connection_go_on(c);
}

// The end

void connection_closed(struct connection *c, unsigned code, const char *reason)
{
    c->lost = code == FRAME_CLOSE_ABNORMAL;
    c->done = c->state == CONNECTION_SERVED && code == FRAME_CLOSE_NORMAL;
    log_debug("disconnected", "who", c->name, "peer", c->address, "code", log_i64(code), "reason", reason, NULL);
    connection_free(c);
}

void connection_free(struct connection *c)
{
    detach(c);
    list_remove(&c->link);
    free(c->token);
    free(c);
}
