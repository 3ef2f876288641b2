// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/worker/host/host_proxy.h"

#include "common/base/le.h"
#include "common/base/mem.h"
#include "common/ws/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void send_body(struct host_proxy *p, enum record_type type, uint32_t call, const void *body, size_t len)
{
    struct err err = ERR_INIT;
    struct record_header h = {
        .call = call, .rank = RECORD_GROUP, .type = (uint8_t)type, .flags = type == RECORD_CALL ? p->flags : 0};
    assert_int_equal(ws_session_record_copy(p->peer, &h, body, len, &err), 0);
}

void host_proxy_send(struct host_proxy *p, enum record_type type, uint32_t call, const char *body)
{
    send_body(p, type, call, body, strlen(body));
}

void host_proxy_call(struct host_proxy *p, uint32_t id, const char *head, const char *args)
{
    struct buf body = BUF_INIT((size_t)32 << 20);
    char prefix[4];
    record_call_prefix(prefix, (uint32_t)strlen(head));
    buf_append(&body, prefix, sizeof prefix);
    buf_puts(&body, head);
    buf_puts(&body, args);
    send_body(p, RECORD_CALL, id, buf_str(&body), body.len);
    buf_done(&body);
}

static void send_shared(void *ctx, enum record_type type, const char *body, size_t len)
{
    send_body(ctx, type, 0, body, len);
}

static struct area *open_area(void *ctx, int fd, size_t size, struct err *err)
{
    (void)ctx;
    return memory_open(getpid(), fd, size, false, err);
}

static int proxy_upgrade(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err)
{
    struct host_proxy *p = ctx;
    (void)s, (void)err;
    snprintf(p->path, sizeof p->path, "%s", ws_request_path(r));
    return 0;
}

static void proxy_open(void *ctx, struct ws_session *s)
{
    struct host_proxy *p = ctx;
    struct record_reader_config config = {.whole = true, .share = p->shares ? &p->share : NULL};
    p->peer = s;
    if (p->shares)
        share_init(&p->share, &(struct share_config){.send = send_shared, .open = open_area, .ctx = p});
    record_reader_init(&p->reader, &config);
}

static void proxy_memory(struct host_proxy *p, const struct record *r)
{
    struct err err = ERR_INIT;
    p->last_area = le_get_u32(r->body);
    p->n_areas++;
    assert_int_equal(share_record(&p->share, r->h.type, r->body, r->len, &err), 0);
}

static void proxy_record(struct host_proxy *p, const struct record *r)
{
    if (r->h.type == RECORD_MEMORY) {
        proxy_memory(p, r);
        return;
    }
    int shown = (int)MIN(r->len, 1000);
    buf_printf(&p->trace, "%s %u %.*s\n", record_type_name(r->h.type), r->h.call, shown, r->body);
    if (r->h.type == RECORD_HELLO) {
        p->n_hello++;
        if (p->welcome)
            host_proxy_send(p, RECORD_WELCOME, 0, p->welcome);
    }
}

static void proxy_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    struct host_proxy *p = ctx;
    struct record r;
    struct err err = ERR_INIT;
    (void)s, (void)end;
    while (record_reader_next(&p->reader, &data, &len, &r, &err) > 0)
        proxy_record(p, &r);
    assert_int_equal(err.code, 0);
}

static void proxy_done(struct host_proxy *p)
{
    share_done(&p->share);
    record_reader_done(&p->reader);
    p->peer = NULL;
}

static void proxy_close(void *ctx, struct ws_session *s, unsigned code, const char *reason)
{
    struct host_proxy *p = ctx;
    (void)s;
    if (!p->peer)
        return;
    buf_printf(&p->trace, "closed %u %s\n", code, reason);
    proxy_done(p);
}

void host_proxy_start(struct host_proxy *p)
{
    static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, NULL};
    struct err err = ERR_INIT;
    struct ws_server_config config = {
        .subprotocols = subprotocols,
        .cert_pem = p->cert_pem,
        .key_pem = p->key_pem,
        .on_upgrade = proxy_upgrade,
        .on_open = proxy_open,
        .on_data = proxy_data,
        .on_close = proxy_close,
        .ctx = p,
    };
    p->server = ws_server_new(p->loop, &config, &err);
    assert_non_null(p->server);
    p->port = ws_server_listen(p->server, p->address, p->cert_pem != NULL, &err);
    assert_true(p->port >= 0);
}

void host_proxy_stop(struct host_proxy *p)
{
    ws_server_free(TAKE_PTR(p->server));
    if (p->peer)
        proxy_done(p);
}

void host_proxy_init(struct host_proxy *p, struct loop *loop)
{
    *p = (struct host_proxy){.loop = loop, .trace = BUF_INIT((size_t)1 << 20), .welcome = "{}"};
    snprintf(p->address, sizeof p->address, "unix:/tmp/cadre-host-test-%d.sock", (int)getpid());
}

void host_proxy_done(struct host_proxy *p)
{
    host_proxy_stop(p);
    buf_done(&p->trace);
    unlink(p->address + strlen("unix:"));
}

bool host_proxy_came(const struct host_proxy *p, const char *text)
{
    return strstr(buf_str(&p->trace), text) != NULL;
}
