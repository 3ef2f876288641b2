// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/common/ws/ws_fixture.h"

#include "common/base/mem.h"
#include "tests/unit/support/session_say.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int on_upgrade(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err)
{
    struct ws_fixture *f = ctx;
    const char *token = ws_request_header(r, "authorization"), *other = ws_request_header(r, "x-other");
    buf_printf(&f->trace, "upgrade %s auth=%s other=%s\n", ws_request_path(r), token ? token : "none",
               other ? other : "none");
    ws_session_set_user(s, f);
    if (!f->refuse_status)
        return 0;
    err->http_status = f->refuse_status;
    return err_set(err, ERR_FORBIDDEN, "you may not");
}

static void on_open(void *ctx, struct ws_session *s)
{
    struct ws_fixture *f = ctx;
    f->session = s;
    buf_printf(&f->trace, "open %s\n", ws_session_subprotocol(s));
}

static void on_message(void *ctx, struct ws_session *s, const struct ws_message *m)
{
    struct ws_fixture *f = ctx;
    struct err err = ERR_INIT;
    buf_printf(&f->trace, "message %s %zu\n", m->text ? "text" : "binary", m->len);
    if (!f->quiet && session_say(s, m->text, m->data, m->len, &err) < 0)
        buf_printf(&f->trace, "cannot answer: %s\n", err.msg);
}

static void on_drained(void *ctx, struct ws_session *s)
{
    struct ws_fixture *f = ctx;
    (void)s;
    f->drained++;
}

static void on_close(void *ctx, struct ws_session *s, unsigned code, const char *reason)
{
    struct ws_fixture *f = ctx;
    buf_printf(&f->trace, "close %u %s\n", code, reason);
    if (ws_session_user(s) != f)
        abort();
    f->unsent = ws_session_queued(s);
    if (f->session == s)
        f->session = NULL;
}

static void on_gone(void *ctx, struct ws_request *r)
{
    struct ws_fixture *f = ctx;
    (void)r;
    f->request = NULL;
    buf_puts(&f->trace, "gone\n");
}

static void on_http(void *ctx, struct ws_request *r)
{
    struct ws_fixture *f = ctx;
    size_t len;
    const char *body = ws_request_body(r, &len), *type = ws_request_header(r, "content-type");
    buf_printf(&f->trace, "%s %s %s %zu\n", ws_request_method(r), ws_request_path(r), type ? type : "-", len);
    if (f->hold_requests) {
        f->request = r;
        ws_request_on_gone(r, on_gone, f);
    } else {
        ws_request_respond(r, 200, "text/plain", "X-Test: 1\r\n", body, len);
    }
}

void ws_fixture_start(struct ws_fixture *f, const struct ws_server_config *config)
{
    static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, RECORD_SUBPROTOCOL_JSON, NULL};
    struct ws_server_config own = *config;
    struct err err = ERR_INIT;
    *f = (struct ws_fixture){.loop = loop_new(), .trace = BUF_INIT(1 << 20)};
    own.subprotocols = subprotocols;
    own.on_upgrade = on_upgrade;
    own.on_open = on_open;
    own.on_message = on_message;
    own.on_drained = on_drained;
    own.on_close = on_close;
    own.on_http = on_http;
    own.ctx = f;
    f->server = ws_server_new(f->loop, &own, &err);
    if (!f->server)
        fail_msg("%s", err.msg);
}

void ws_fixture_listen(struct ws_fixture *f, const char *address, bool tls)
{
    struct err err = ERR_INIT;
    f->port = ws_server_listen(f->server, address, tls, &err);
    if (f->port < 0)
        fail_msg("%s", err.msg);
    if (f->port)
        snprintf(f->address, sizeof f->address, "127.0.0.1:%d", f->port);
    else
        snprintf(f->address, sizeof f->address, "%s", address);
}

void ws_fixture_stop(struct ws_fixture *f)
{
    ws_server_free(f->server);
    loop_free(f->loop);
    buf_done(&f->trace);
}

static void free_in(struct ws_peer *p, int callback)
{
    if (p->free_in == callback)
        ws_client_free(TAKE_PTR(p->client));
}

static void peer_open(void *ctx, const char *protocol)
{
    struct ws_peer *p = ctx;
    p->opened = true;
    snprintf(p->protocol, sizeof p->protocol, "%s", protocol);
    free_in(p, 1);
}

static void peer_data(void *ctx, const char *data, size_t len, bool end)
{
    struct ws_peer *p = ctx;
    buf_append(&p->got, data, len);
    if (end)
        buf_puts(&p->got, "|");
    free_in(p, 2);
}

static void peer_message(void *ctx, bool text, const char *data, size_t len)
{
    struct ws_peer *p = ctx;
    buf_puts(&p->got, text ? "" : "b:");
    buf_append(&p->got, data, len);
    buf_puts(&p->got, "|");
    free_in(p, 3);
}

static void peer_drained(void *ctx)
{
    struct ws_peer *p = ctx;
    p->drained++;
}

static void peer_close(void *ctx, unsigned code, const char *reason, const struct err *err)
{
    struct ws_peer *p = ctx;
    p->closed = true;
    p->code = code;
    p->err = *err;
    snprintf(p->reason, sizeof p->reason, "%s", reason);
    free_in(p, 4);
}

void ws_peer_start(struct ws_peer *p, struct ws_fixture *f, const struct ws_client_config *config)
{
    struct ws_client_config own = config ? *config : (struct ws_client_config){0};
    struct err err = ERR_INIT;
    int free_where = p->free_in;
    bool pieces = p->pieces;
    *p = (struct ws_peer){.f = f, .got = BUF_INIT(256 << 20), .free_in = free_where, .pieces = pieces};
    if (!own.address)
        own.address = f->address;
    if (!own.subprotocols)
        own.subprotocols = RECORD_SUBPROTOCOL;
    own.on_open = peer_open;
    own.on_data = pieces ? peer_data : NULL;
    own.on_message = peer_message;
    own.on_drained = peer_drained;
    own.on_close = peer_close;
    own.ctx = p;
    p->client = ws_client_new(f->loop, &own, &err);
    if (!p->client)
        fail_msg("%s", err.msg);
}

void ws_peer_stop(struct ws_peer *p)
{
    ws_client_free(TAKE_PTR(p->client));
    buf_done(&p->got);
}

void ws_peer_send(struct ws_peer *p, const char *text)
{
    struct err err = ERR_INIT;
    if (ws_client_message(p->client, true, text, strlen(text), &err) < 0)
        fail_msg("%s", err.msg);
}
