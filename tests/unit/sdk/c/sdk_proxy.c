// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/sdk/c/sdk_proxy.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/wire/record_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct peer {
    struct list link;
    struct ws_session *session;
    struct record_reader reader;
};

static void note(struct sdk_proxy *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct sdk_proxy *p, const char *fmt, ...)
{
    char line[4096];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    pthread_mutex_lock(&p->lock);
    buf_printf(&p->trace, "%s\n", line);
    pthread_mutex_unlock(&p->lock);
}

size_t sdk_proxy_saw(struct sdk_proxy *p, const char *text)
{
    size_t n = 0;
    pthread_mutex_lock(&p->lock);
    for (const char *at = buf_str(&p->trace); (at = strstr(at, text)); at += strlen(text))
        n++;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static void say(struct peer *peer, enum record_type type, uint32_t call, uint32_t rank, const char *body, size_t len)
{
    struct err err = ERR_INIT;
    const struct record_header h = {.type = (uint8_t)type, .call = call, .rank = rank};
    (void)ws_session_record_copy(peer->session, &h, body, len, &err);
}

static void say_text(struct peer *peer, enum record_type type, uint32_t call, const char *body)
{
    say(peer, type, call, RECORD_GROUP, body, strlen(body));
}

static void say_big(struct peer *peer, uint32_t call, const char *args, size_t len)
{
    int64_t n = 0;
    char number[32];
    snprintf(number, sizeof number, "%.*s", (int)MIN(len, sizeof number - 1) - 2, args + 1);
    if (!str_to_i64(number, &n))
        abort();
    char *text = xmalloc((size_t)n + 2);
    memset(text, 'x', (size_t)n + 2);
    text[0] = text[n + 1] = '"';
    say(peer, RECORD_RESULT, call, RECORD_GROUP, text, (size_t)n + 2);
    free(text);
}

static const char failure[] =
    "{\"code\":\"UNAVAILABLE\",\"message\":\"rank 2 of ml/llama exited with code 137\","
    "\"rank\":2,\"pod\":\"llama-2-0\",\"node\":\"n2\",\"exitCode\":137,\"retryAfterMs\":1500}";

static void take_call(struct sdk_proxy *p, struct peer *peer, const struct record *r)
{
    struct record_call parts;
    struct err err = ERR_INIT;
    char method[128] = "";
    if (record_call_decode(r->body, r->len, &parts, &err) < 0)
        abort();
    note(p, "%sCALL %d/%u/%u %.*s %.*s", r->h.flags & RECORD_QUIET ? "QUIET " : "", (int)r->h.rank, r->h.dispatch,
         r->h.execute, (int)parts.head_len, parts.head, (int)MIN(parts.args_len, 200), parts.args);
    const char *name = parts.head + strlen("{\"method\":\"");
    snprintf(method, sizeof method, "%.*s", (int)strcspn(name, "\""), name);
    if (str_eq(method, "echo")) {
        say(peer, RECORD_RESULT, r->h.call, RECORD_GROUP, parts.args, parts.args_len);
    } else if (str_eq(method, "big")) {
        say_big(peer, r->h.call, parts.args, parts.args_len);
    } else if (str_eq(method, "fail")) {
        say_text(peer, RECORD_ERROR, r->h.call, failure);
    } else if (str_eq(method, "busy")) { // three times, then it answers
        bool still = ++p->n_busy % 4;
        say_text(peer, still ? RECORD_ERROR : RECORD_RESULT, r->h.call,
                 still ? "{\"code\":\"THROTTLED\",\"message\":\"too many calls\",\"retryAfterMs\":1}" : "\"at last\"");
    } else if (str_eq(method, "later")) {
        say_text(peer, RECORD_ERROR, r->h.call,
                 "{\"code\":\"UNAVAILABLE\",\"message\":\"a rank died\",\"rank\":2,\"retryAfterMs\":3000000}");
    } else if (str_eq(method, "wait")) {
        say_text(peer, RECORD_ERROR, r->h.call, "{\"code\":\"TIMEOUT\",\"message\":\"not ready\",\"ran\":false}");
    } else if (str_eq(method, "raise")) {
        say_text(peer, RECORD_ERROR, r->h.call, "{\"code\":\"FAILED\",\"message\":\"no such file\",\"rank\":1}");
    } else if (str_eq(method, "raise_value_error")) {
        say_text(peer, RECORD_ERROR, r->h.call, "{\"code\":\"ValueError\",\"message\":\"no such file\",\"rank\":1}");
    } else if (str_eq(method, "goodbye")) {
        say_text(peer, RECORD_GOODBYE, 0, "{\"reason\":\"restart\"}");
        say_text(peer, RECORD_RESULT, r->h.call, "null");
    } else if (str_eq(method, "forget")) {
        say_text(peer, RECORD_RESULT, r->h.call, "null");
        say_text(peer, RECORD_ERROR, 0, "{\"code\":\"UNAUTHORIZED\",\"message\":\"the token has expired\"}");
        ws_session_close(peer->session, FRAME_CLOSE_POLICY, "the token has expired");
    } else if (str_eq(method, "hang_up") || (str_eq(method, "hang_up_once") && p->n_hung_up++ == 0)) {
        ws_session_close(peer->session, FRAME_CLOSE_GOING_AWAY, "restart");
    } else if (!str_eq(method, "mute")) {
        char quoted[160];
        snprintf(quoted, sizeof quoted, "\"%s\"", method);
        say_text(peer, RECORD_RESULT, r->h.call, quoted);
    }
}

static void take_hello(struct sdk_proxy *p, struct peer *peer, const struct record *r)
{
    note(p, "HELLO %.*s", (int)r->len, r->body);
    if (memmem(r->body, r->len, "\"token\":\"wrong\"", 15)) {
        say_text(peer, RECORD_ERROR, 0, "{\"code\":\"UNAUTHORIZED\",\"message\":\"nobody knows this token\"}");
        ws_session_close(peer->session, FRAME_CLOSE_POLICY, "nobody knows this token");
    } else if (p->n_ignored) {
        p->n_ignored--;
    } else if (p->welcome) {
        say_text(peer, RECORD_WELCOME, 0, p->welcome);
    }
}

static void take_record(struct sdk_proxy *p, struct peer *peer, const struct record *r)
{
    if (r->h.type == RECORD_HELLO)
        take_hello(p, peer, r);
    else if (r->h.type == RECORD_CALL)
        take_call(p, peer, r);
    else
        note(p, "%s", record_type_name(r->h.type));
    if (r->h.type == RECORD_CANCEL)
        say_text(peer, RECORD_ERROR, r->h.call, "{\"code\":\"CANCELED\",\"message\":\"mute() was canceled\"}");
}

static void peer_free(struct peer *peer)
{
    list_remove(&peer->link);
    record_reader_done(&peer->reader);
    free(peer);
}

static int on_upgrade(void *ctx, struct ws_session *s, struct ws_request *r, struct err *err)
{
    struct sdk_proxy *p = ctx;
    const char *path = ws_request_path(r), *token = ws_request_header(r, "authorization");
    note(p, "upgrade %s %s", path, token ? token : "-");
    if (strstr(path, "/namespaces/nobody"))
        return err->http_status = 401, err_set(err, ERR_UNAUTHORIZED, "no token");
    if (strstr(path, "/namespaces/denied"))
        return err->http_status = 403, err_set(err, ERR_FORBIDDEN, "you may not call in namespace denied");
    struct peer *peer = xcalloc(1, sizeof *peer);
    peer->session = s;
    list_append(&p->peers, &peer->link);
    record_reader_init(&peer->reader, &(struct record_reader_config){.whole = true});
    ws_session_set_user(s, peer);
    return 0;
}

static void on_open(void *ctx, struct ws_session *s)
{
    (void)ctx, (void)s;
}

static void on_data(void *ctx, struct ws_session *s, const char *data, size_t len, bool end)
{
    struct peer *peer = ws_session_user(s);
    struct record r;
    struct err err = ERR_INIT;
    int got;
    (void)end;
    while ((got = record_reader_next(&peer->reader, &data, &len, &r, &err)) > 0)
        take_record(ctx, peer, &r);
    if (got < 0)
        note(ctx, "broken: %s", err.msg);
}

static void on_close(void *ctx, struct ws_session *s, unsigned code, const char *reason)
{
    note(ctx, "closed %u %s", code, reason);
    peer_free(ws_session_user(s));
}

static void on_stop(void *ctx)
{
    struct sdk_proxy *p = ctx;
    loop_wakeup_free(TAKE_PTR(p->stop));
    ws_server_stop_listening(p->server);
    loop_stop(p->loop);
}

static void *run(void *arg)
{
    struct sdk_proxy *p = arg;
    loop_run(p->loop);
    return NULL;
}

void sdk_proxy_start(struct sdk_proxy *p, const char *cert_pem, const char *key_pem)
{
    static const char *const subprotocols[] = {RECORD_SUBPROTOCOL, NULL};
    struct err err = ERR_INIT;
    const struct ws_server_config config = {.subprotocols = subprotocols,
                                            .cert_pem = cert_pem,
                                            .key_pem = key_pem,
                                            .on_upgrade = on_upgrade,
                                            .on_open = on_open,
                                            .on_data = on_data,
                                            .on_close = on_close,
                                            .ctx = p};
    p->loop = loop_new();
    p->server = ws_server_new(p->loop, &config, &err);
    if (!p->server)
        fail_msg("%s", err.msg);
    snprintf(p->url, sizeof p->url, "unix:%s/proxy.sock", p->dir);
    const char *address = p->listen ? p->listen : cert_pem ? "127.0.0.1:0" : p->url;
    int port = ws_server_listen(p->server, address, cert_pem != NULL, &err);
    if (port < 0)
        fail_msg("%s", err.msg);
    if (!str_starts(address, "unix:"))
        snprintf(p->url, sizeof p->url, "%s://%.*s:%d", cert_pem ? "wss" : "ws", (int)strcspn(address, ":"), address,
                 port);
    p->stop = loop_wakeup_new(p->loop, on_stop, p);
    p->runs = true;
    assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
}

void sdk_proxy_stop(struct sdk_proxy *p)
{
    if (!p->runs)
        return;
    loop_wakeup_signal(p->stop);
    pthread_join(p->thread, NULL);
    p->runs = false;
    ws_server_free(p->server); // without callbacks
    LIST_FOREACH(l, &p->peers)
        peer_free(CONTAINER_OF(l, struct peer, link));
    loop_free(p->loop);
}

void sdk_proxy_init(struct sdk_proxy *p)
{
    *p = (struct sdk_proxy){.trace = BUF_INIT(16 << 20), .welcome = "{\"version\":1}"};
    snprintf(p->dir, sizeof p->dir, "/tmp/cadre-sdk-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->url, sizeof p->url, "unix:%s/proxy.sock", p->dir);
    list_init(&p->peers);
    pthread_mutex_init(&p->lock, NULL);
}

void sdk_proxy_done(struct sdk_proxy *p)
{
    char path[128];
    sdk_proxy_stop(p);
    snprintf(path, sizeof path, "%s/proxy.sock", p->dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/token", p->dir);
    unlink(path);
    rmdir(p->dir);
    buf_done(&p->trace);
    pthread_mutex_destroy(&p->lock);
}
