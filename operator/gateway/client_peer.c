// SPDX-License-Identifier: Apache-2.0
#include "operator/gateway/client_peer.h"

#include "common/base/json_writer.h"
#include "common/base/str.h"
#include "operator/proxy/jsonrpc.h"
#include "operator/proxy/tenant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKEN_MAX = 16 * 1024,
    TEXT_UNITS = 2, // work for an answer that is a message of its own
};

// Both protocols

static void watch_right(struct connection *c);

static struct session *session_of(const struct connection *c)
{
    return c->json ? ((struct jsonrpc *)c->self)->session : c->self;
}

// The RoleBinding or the account of the client may be gone. If nobody can tell, for example without an API server, the
// client stays.
static void on_reviewed(struct admission *a)
{
    struct connection *c = CONTAINER_OF(a, struct connection, review);
    struct err err = a->err;
    if (err.code == ERR_UNAUTHORIZED || err.code == ERR_FORBIDDEN) {
        err_wrap(&err, "this client may no longer call");
        connection_close(c, err.code == ERR_UNAUTHORIZED ? GATEWAY_CLOSE_EXPIRED : FRAME_CLOSE_POLICY, &err);
    } else {
        if (!err.code)
            session_of(c)->code = a->code;
        watch_right(c);
    }
}

static void on_watch(struct alarm *a)
{
    struct connection *c = CONTAINER_OF(a, struct connection, alarm);
    if (admission_left_ms(&c->admission) == 0) {
        connection_expired(c);
        return;
    }
    admission_done(&c->review);
    admission_ask(&c->review, c->gateway, c->token, c->target.ns, on_reviewed);
    if (c->review.settled)
        on_reviewed(&c->review);
}

// Watches until the token expires. Meanwhile it asks again whether the client still has the right.
static void watch_right(struct connection *c)
{
    int64_t left = admission_left_ms(&c->admission), review = c->gateway->config.review_ms;
    if (!c->open)
        alarm_set(&c->alarm, &c->gateway->alarms, left < 0 ? review : MIN(left, review), on_watch);
}

static void close_as_told(struct connection *c, const struct peer *p)
{
    struct err err = ERR_INIT;
    err_set(&err, p->close_code, "%s", p->close_reason);
    connection_close(c, p->close_code == ERR_LIMIT ? FRAME_CLOSE_TRY_LATER : gateway_close_code(p->close_code), &err);
}

static void serve_as(struct connection *c, const struct peer_role *role, void *self, struct session *s)
{
    s->code = c->admission.code;
    c->gateway->counters.clients++;
    c->payer = quota_ref(s->tenant->quota);
    connection_owner(c, c->target.ns);
    connection_serve(c, role, self, s->quota);
}

// cadre.v1

static int records_record(struct connection *c, const struct record *rec, struct err *err)
{
    if (rec->h.type == RECORD_GOODBYE)
        return 0; // the close frame follows
    struct session *s = c->self;
    int r = session_record(s, rec, record_reader_unfinished(&c->reader), err);
    c->want = s->peer.want;
    return r;
}

static bool must_read(const struct connection *c)
{
    return connection_in_body(c) && session_takes_body(c->self);
}

static bool records_stop(const struct connection *c)
{
    const struct session *s = c->self;
    return !must_read(c) && !(s->peer.read && tenant_has_turn(s->tenant));
}

static void records_after(struct connection *c)
{
    const struct session *s = c->self;
    bool read = s->peer.read || must_read(c);
    if (!read && connection_in_body(c)) // it goes on once the client has read its answers
        connection_works_on(c);
    connection_read(c, read);
}

static void records_changed(struct connection *c, struct peer *p)
{
    if (p->close_code) {
        close_as_told(c, p);
        return;
    }
    ws_session_wake(c->ws);
    records_after(c);
}

static void records_end(struct connection *c)
{
    c->gateway->counters.clients--;
    session_end(TAKE_PTR(c->self));
}

static bool records_idle(const struct connection *c)
{
    return session_idle(c->self);
}

static const struct peer_role records_role = {.name = "client",
                                              .pieces = true,
                                              .record = records_record,
                                              .stops = records_stop,
                                              .after = records_after,
                                              .changed = records_changed,
                                              .end = records_end,
                                              .idle = records_idle};

static int send_welcome(struct connection *c, struct err *err)
{
    const struct group *g = router_group_named(&c->gateway->router, c->target.ns, c->target.group);
    _cleanup_(writer_done) struct json_writer w = WRITER_INIT;
    writer_object(&w, NULL);
    writer_i64(&w, "version", 1);
    if (g)
        hello_group(g, g->attempt, &w);
    writer_i64(&w, "maxBody", (int64_t)c->gateway->config.max_body);
    writer_i64(&w, "maxCalls", c->gateway->config.max_calls);
    connection_share(c, &w);
    writer_object_end(&w);
    return connection_send(c, RECORD_WELCOME, buf_str(&w.buf), w.buf.len, err);
}

static void serve_records(struct connection *c)
{
    struct err err = ERR_INIT;
    if (send_welcome(c, &err) < 0) {
        connection_refuse(c, &err);
        return;
    }
    struct session *s =
        session_new(&c->gateway->router, c->target.ns, c->target.group, ws_session_records(c->ws), &c->owner);
    if (c->output)
        session_listen(s);
    serve_as(c, &records_role, s, s);
}

// cadre.v1.json

static bool text_works(const struct connection *c)
{
    return jsonrpc_busy(c->self) && ws_session_queued(c->ws) < WS_HIGH_MARK;
}

// Sends answers as long as the peer reads them. While it does not, nothing is read from it, either.
static void text_after(struct connection *c)
{
    struct jsonrpc *j = c->self;
    struct err err = ERR_INIT;
    struct parts text;
    while (ws_session_queued(c->ws) < WS_HIGH_MARK) {
        if (!jsonrpc_next(j, &text))
            break;
        if (ws_session_parts(c->ws, true, &text, &err) < 0) {
            connection_close(c, FRAME_CLOSE_TRY_LATER, &err);
            return;
        }
    }
    if (text_works(c))
        connection_works_on(c);
    connection_read(c, j->session->peer.read && !jsonrpc_reads(j) && ws_session_queued(c->ws) < WS_HIGH_MARK);
}

static bool text_stops(const struct connection *c)
{
    const struct jsonrpc *j = c->self;
    return !j->session->peer.read || jsonrpc_reads(j) || !tenant_has_turn(j->session->tenant) ||
           ws_session_queued(c->ws) >= WS_HIGH_MARK;
}

static void text_text(struct connection *c, const char *text, size_t len, struct blob *blob)
{
    struct jsonrpc *j = c->self;
    if (blob && len > JSONRPC_LONG) {
        jsonrpc_input_long(j, blob, text, len);
    } else {
        tenant_spend(j->session->tenant, TEXT_UNITS + len / TENANT_UNIT_BYTES);
        jsonrpc_input(j, text, len);
    }
    text_after(c);
}

static void text_changed(struct connection *c, struct peer *p)
{
    if (p->close_code)
        close_as_told(c, p);
    else
        text_after(c);
}

static void text_end(struct connection *c)
{
    struct jsonrpc *j = TAKE_PTR(c->self);
    c->gateway->counters.clients--;
    jsonrpc_done(j);
    free(j);
}

static bool text_idle(const struct connection *c)
{
    const struct jsonrpc *j = c->self;
    return jsonrpc_idle(j);
}

static const struct peer_role text_role = {.name = "client",
                                           .text = text_text,
                                           .stops = text_stops,
                                           .works = text_works,
                                           .after = text_after,
                                           .changed = text_changed,
                                           .end = text_end,
                                           .idle = text_idle};

static void serve_text(struct connection *c)
{
    struct jsonrpc *j = xcalloc(1, sizeof *j);
    jsonrpc_init(j, &c->gateway->router, c->target.ns, c->target.group, c->gateway->config.max_queue, &c->owner);
    serve_as(c, &text_role, j, j->session);
}

// Admission

static void serve(struct connection *c)
{
    snprintf(c->name, sizeof c->name, "%.90s for %s%s%s", c->admission.user ? c->admission.user : "a client",
             c->target.ns, c->target.group[0] ? "/" : "", c->target.group);
    struct err err = ERR_INIT;
    if (tenant_check_sessions(&c->gateway->router, c->target.ns, &err) < 0) {
        connection_refuse(c, &err);
        return;
    }
    watch_right(c);
    if (c->json)
        serve_text(c);
    else
        serve_records(c);
}

// Serves the client when the authority has answered and the client has said what it must say.
static void advance(struct connection *c)
{
    if (!c->admission.settled || c->state == CONNECTION_UPGRADED || c->state >= CONNECTION_SERVED)
        return;
    if (c->admission.err.code)
        connection_refuse(c, &c->admission.err);
    else if (c->state == CONNECTION_WAITING)
        serve(c);
}

static void on_admission(struct admission *a)
{
    advance(CONTAINER_OF(a, struct connection, admission));
}

static void ask(struct connection *c)
{
    admission_ask(&c->admission, c->gateway, c->token, c->target.ns, on_admission);
}

int client_upgrade(struct connection *c, const char *token, struct err *err)
{
    c->token = token ? xstrdup(token) : NULL;
    snprintf(c->name, sizeof c->name, "a client for %s", c->target.ns);
    if (!c->token && !c->open)
        return 0;
    ask(c);
    *err = c->admission.err;
    return err->code;
}

void client_open(struct connection *c)
{
    struct err err = ERR_INIT;
    if (c->json && !c->token && !c->open) {
        admission_no_token(&err);
        connection_refuse(c, &err);
        return;
    }
    if (c->json)
        connection_wait(c);
    advance(c);
}

int client_hello(struct connection *c, const struct hello *h, struct err *err)
{
    struct target *t = &c->target;
    if (h->ns && !str_eq(h->ns, t->ns))
        return err_set(err, ERR_FORBIDDEN, "HELLO: namespace %.63s, but the path names %s", h->ns, t->ns);
    if (h->group && t->group[0] && !str_eq(h->group, t->group))
        return err_set(err, ERR_FORBIDDEN, "HELLO: group %.63s, but the path names %s", h->group, t->group);
    if (!c->token && !h->token && !c->open)
        return err_set(err, ERR_UNAUTHORIZED, "a token is needed, as Authorization: Bearer ... or in HELLO");
    if (h->token && strlen(h->token) > TOKEN_MAX)
        return err_set(err, ERR_UNAUTHORIZED,
                       "HELLO: the token is longer than %d bytes, longer than any token of a cluster", TOKEN_MAX);
    if (h->group && strlen(h->group) >= sizeof t->group)
        return err_set(err, ERR_INVALID, "HELLO: \"group\" is not the name of a WorkerGroup");
    if (h->group)
        snprintf(t->group, sizeof t->group, "%s", h->group);
    c->output = h->output;
    connection_wait(c);
    if (!c->token && !c->open) {
        c->token = xstrdup(h->token);
        ask(c);
    }
    advance(c);
    return 0;
}
