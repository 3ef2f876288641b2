// SPDX-License-Identifier: Apache-2.0
#include "tests/fakeapi/fakeapi.h"

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/fakeapi/conn.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct rule {
    struct fakeapi_rule rule; // texts owned
    int used;
};

struct fakeapi {
    struct loop *loop;
    SSL_CTX *tls;
    int fd; // listens
    struct loop_poll *poll;
    struct sockaddr_in address;
    char url[64];
    struct list sessions;
    int connections;
    struct rule *rules;
    int n_rules;
    bool (*handle)(void *ctx, const struct fakeapi_request *r, struct fakeapi_rule *ret);
    void *handle_ctx;
    struct fakeapi_request **seen;
    int n_seen;
};

enum session_state { SESSION_READING, SESSION_ANSWERING, SESSION_OPEN, SESSION_SILENT };

struct session { // one connection and the answer that is being given on it
    struct list link;
    struct fakeapi *api;
    struct conn *conn;
    int number;
    enum session_state state;
    struct loop_timer *pause;
    struct fakeapi_rule answer; // body owned
    size_t sent;                // of the body
    bool chunked;
    const char *target; // of the request being answered
};

static void session_step(struct session *s);
static void session_parse(struct session *s);

// --- answers

static const char *status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 410:
        return "Gone";
    case 429:
        return "Too Many Requests";
    case 503:
        return "Service Unavailable";
    default:
        return "Status";
    }
}

static void session_write(struct session *s, const char *text)
{
    conn_write(s->conn, text, strlen(text));
}

static void session_head(struct session *s)
{
    const struct fakeapi_rule *a = &s->answer;
    char *length =
        s->chunked ? xstrdup("Transfer-Encoding: chunked") : xasprintf("Content-Length: %zu", strlen(a->body));
    char *head = xasprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%s\r\n%s\r\n", a->status,
                           status_text(a->status), length, a->headers ? a->headers : "");
    session_write(s, head);
    free(length);
    free(head);
}

static void session_chunk(struct session *s, const char *bytes, size_t n)
{
    char size[24];
    snprintf(size, sizeof size, "%zx\r\n", n);
    if (s->chunked)
        session_write(s, size);
    conn_write(s->conn, bytes, n);
    if (s->chunked)
        session_write(s, "\r\n");
}

static void session_end(struct session *s, enum fakeapi_ending ending)
{
    if (ending == FAKEAPI_RESET)
        conn_reset(s->conn);
    if ((ending == FAKEAPI_KEEP || ending == FAKEAPI_CLOSE) && s->chunked)
        session_write(s, "0\r\n\r\n");
    free((char *)TAKE_PTR(s->answer.body));
    if (ending == FAKEAPI_OPEN) {
        s->state = SESSION_OPEN;
    } else if (ending == FAKEAPI_KEEP) {
        s->state = SESSION_READING;
        session_parse(s);
    } else {
        conn_finish(s->conn);
    }
}

static void session_step(struct session *s)
{
    const struct fakeapi_rule *a = &s->answer;
    size_t len = strlen(a->body);
    while (s->sent < len) {
        size_t n = a->split ? MIN(a->split, len - s->sent) : len;
        session_chunk(s, a->body + s->sent, n);
        s->sent += n;
        if (a->pause_ms) {
            loop_timer_arm(s->pause, a->pause_ms);
            return;
        }
    }
    session_end(s, a->ending);
}

static void on_pause(void *ctx)
{
    session_step(ctx);
}

static void session_answer(struct session *s, const struct fakeapi_rule *rule)
{
    s->answer = *rule;
    if (!s->answer.status)
        s->answer.status = 200;
    s->answer.body = xstrdup(rule->body ? rule->body : "");
    s->sent = 0;
    s->state = SESSION_ANSWERING;
    if (rule->ending == FAKEAPI_SILENT) {
        free((char *)TAKE_PTR(s->answer.body));
        s->state = SESSION_SILENT;
        return;
    }
    // Only with chunks can an answer stop where the client does not expect it, or go on.
    s->chunked = rule->split || (rule->ending != FAKEAPI_KEEP && rule->ending != FAKEAPI_CLOSE);
    if (rule->ending != FAKEAPI_HANGUP)
        session_head(s);
    session_step(s);
}

// --- requests

static bool rule_matches(const struct rule *r, const struct fakeapi_request *q)
{
    const struct fakeapi_rule *m = &r->rule;
    if (m->times && r->used >= m->times)
        return false;
    if (m->token && (!str_starts(q->authorization, "Bearer ") || !str_eq(q->authorization + 7, m->token)))
        return false;
    return (!m->method || str_eq(m->method, q->method)) && (!m->target || strstr(q->target, m->target));
}

static void answer_request(struct session *s, const struct fakeapi_request *q)
{
    struct fakeapi *f = s->api;
    struct fakeapi_rule answer = {0};
    s->target = q->target;
    for (int i = 0; i < f->n_rules; i++) {
        if (rule_matches(&f->rules[i], q)) {
            f->rules[i].used++;
            session_answer(s, &f->rules[i].rule);
            return;
        }
    }
    if (!f->handle || !f->handle(f->handle_ctx, q, &answer))
        answer = (struct fakeapi_rule){
            .status = 404,
            .body = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\","
                    "\"message\":\"the server could not find the requested resource\",\"code\":404}"};
    session_answer(s, &answer);
}

static char *header_value(const char *head, const char *name)
{
    char *line = xasprintf("\r\n%s: ", name);
    const char *at = strcasestr(head, line);
    at = at ? at + strlen(line) : NULL;
    free(line);
    return at ? strndup(at, strcspn(at, "\r")) : NULL;
}

static void request_free(struct fakeapi_request *q)
{
    free((char *)q->method);
    free((char *)q->target);
    free((char *)q->authorization);
    free((char *)q->content_type);
    free((char *)q->user_agent);
    free((char *)q->accept);
    free((char *)q->body);
    free(q);
}

static const struct fakeapi_request *record_request(struct session *s, const char *head, const char *body, size_t n)
{
    struct fakeapi *f = s->api;
    struct fakeapi_request *q = xcalloc(1, sizeof *q);
    size_t method = strcspn(head, " "), target = head[method] ? strcspn(head + method + 1, " \r") : 0;
    *q = (struct fakeapi_request){
        .method = strndup(head, method),
        .target = strndup(head + method + (head[method] ? 1 : 0), target),
        .authorization = header_value(head, "Authorization"),
        .content_type = header_value(head, "Content-Type"),
        .user_agent = header_value(head, "User-Agent"),
        .accept = header_value(head, "Accept"),
        .body = strndup(body, n),
        .connection = s->number,
        .resumed = conn_resumed(s->conn),
    };
    f->seen = xrealloc(f->seen, (size_t)f->n_seen + 1, sizeof *f->seen);
    f->seen[f->n_seen++] = q;
    return q;
}

static void session_parse(struct session *s)
{
    struct buf *in = conn_input(s->conn);
    if (in->len && (in->data[0] < 'A' || in->data[0] > 'Z')) { // a TLS hello: Go's server answers so
        session_write(s, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTPS request to an HTTP server.\n");
        conn_finish(s->conn);
        return;
    }
    const char *end = in->len ? strstr(in->data, "\r\n\r\n") : NULL;
    if (s->state != SESSION_READING || !end)
        return;
    size_t head_len = (size_t)(end - in->data) + 4;
    char *head = strndup(in->data, head_len), *length = header_value(head, "Content-Length");
    int64_t body_len = 0;
    if (length)
        (void)str_to_i64(length, &body_len);
    free(length);
    if (in->len >= head_len + (size_t)body_len) {
        const struct fakeapi_request *q = record_request(s, head, in->data + head_len, (size_t)body_len);
        buf_consume(in, head_len + (size_t)body_len);
        answer_request(s, q);
    }
    free(head);
}

// --- connections

static void session_free(struct session *s)
{
    list_remove(&s->link);
    loop_timer_free(s->pause);
    conn_free(s->conn);
    free((char *)s->answer.body);
    free(s);
}

static void on_input(void *ctx)
{
    session_parse(ctx);
}

static void on_closed(void *ctx)
{
    session_free(ctx);
}

static void on_accept(void *ctx, int events)
{
    (void)events;
    static const struct conn_ops ops = {on_input, on_closed};
    struct fakeapi *f = ctx;
    int fd = accept4(f->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct session *s = xcalloc(1, sizeof *s);
    s->api = f;
    s->number = ++f->connections;
    s->pause = loop_timer_new(f->loop, on_pause, s);
    s->conn = conn_new(f->loop, fd, f->tls, &ops, s);
    list_append(&f->sessions, &s->link);
}

static void listener_close(struct fakeapi *f)
{
    loop_poll_free(TAKE_PTR(f->poll));
    close(f->fd);
}

// Bound but not listening, a port answers every connection with a reset and cannot be taken by anybody else.
static void listener_open(struct fakeapi *f, bool down)
{
    socklen_t len = sizeof f->address;
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (f->fd < 0 || bind(f->fd, (struct sockaddr *)&f->address, len) != 0 || (!down && listen(f->fd, 128) != 0))
        abort();
    getsockname(f->fd, (struct sockaddr *)&f->address, &len);
    if (down)
        return;
    struct err ignored = ERR_INIT;
    f->poll = loop_poll_new(f->loop, f->fd, on_accept, f);
    (void)loop_poll_set(f->poll, LOOP_READ, &ignored);
}

void fakeapi_down(struct fakeapi *f, bool down)
{
    while (down && !list_empty(&f->sessions))
        session_free(CONTAINER_OF(f->sessions.next, struct session, link));
    listener_close(f);
    listener_open(f, down);
}

// --- life

static SSL_CTX *tls_new(const struct certs *certs)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    BIO *cert_bio = BIO_new_mem_buf(certs->server_cert, -1), *key_bio = BIO_new_mem_buf(certs->server_key, -1);
    X509 *cert = PEM_read_bio_X509(cert_bio, NULL, NULL, NULL);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL);
    if (SSL_CTX_use_certificate(tls, cert) != 1 || SSL_CTX_use_PrivateKey(tls, key) != 1)
        abort();
    X509_free(cert);
    EVP_PKEY_free(key);
    BIO_free(cert_bio);
    BIO_free(key_bio);
    return tls;
}

struct fakeapi *fakeapi_new(struct loop *loop, const struct certs *certs)
{
    struct fakeapi *f = xcalloc(1, sizeof *f);
    signal(SIGPIPE, SIG_IGN); // OpenSSL writes to sockets whose other end may be gone
    f->loop = loop;
    list_init(&f->sessions);
    f->tls = certs ? tls_new(certs) : NULL;
    f->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    listener_open(f, false);
    snprintf(f->url, sizeof f->url, "%s://127.0.0.1:%d", certs ? "https" : "http", ntohs(f->address.sin_port));
    return f;
}

void fakeapi_free(struct fakeapi *f)
{
    if (!f)
        return;
    while (!list_empty(&f->sessions))
        session_free(CONTAINER_OF(f->sessions.next, struct session, link));
    listener_close(f);
    fakeapi_rules_clear(f);
    for (int i = 0; i < f->n_seen; i++)
        request_free(f->seen[i]);
    free(f->seen);
    SSL_CTX_free(f->tls);
    free(f);
}

const char *fakeapi_url(const struct fakeapi *f)
{
    return f->url;
}

static char *dup_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

int fakeapi_rule(struct fakeapi *f, const struct fakeapi_rule *rule)
{
    f->rules = xrealloc(f->rules, (size_t)f->n_rules + 1, sizeof *f->rules);
    struct rule *r = &f->rules[f->n_rules];
    *r = (struct rule){.rule = *rule};
    r->rule.method = dup_or_null(rule->method);
    r->rule.target = dup_or_null(rule->target);
    r->rule.token = dup_or_null(rule->token);
    r->rule.headers = dup_or_null(rule->headers);
    r->rule.body = dup_or_null(rule->body);
    return f->n_rules++;
}

void fakeapi_rules_clear(struct fakeapi *f)
{
    for (int i = 0; i < f->n_rules; i++) {
        const struct fakeapi_rule *r = &f->rules[i].rule;
        const char *texts[] = {r->method, r->target, r->token, r->headers, r->body};
        for (size_t t = 0; t < ARRAY_LEN(texts); t++)
            free((char *)texts[t]);
    }
    free(TAKE_PTR(f->rules));
    f->n_rules = 0;
}

void fakeapi_handler(struct fakeapi *f,
                     bool (*fn)(void *ctx, const struct fakeapi_request *r, struct fakeapi_rule *ret), void *ctx)
{
    f->handle = fn;
    f->handle_ctx = ctx;
}

static bool is_open(const struct list *l, const char *target)
{
    const struct session *s = CONTAINER_OF(l, struct session, link);
    return s->state == SESSION_OPEN && (!target || strstr(s->target, target));
}

int fakeapi_push(struct fakeapi *f, const char *target, const char *bytes)
{
    int n = 0;
    LIST_FOREACH(l, &f->sessions) {
        if (is_open(l, target)) {
            session_chunk(CONTAINER_OF(l, struct session, link), bytes, strlen(bytes));
            n++;
        }
    }
    return n;
}

int fakeapi_end(struct fakeapi *f, const char *target, enum fakeapi_ending ending)
{
    int n = 0;
    LIST_FOREACH(l, &f->sessions) {
        if (is_open(l, target)) {
            session_end(CONTAINER_OF(l, struct session, link), ending);
            n++;
        }
    }
    return n;
}

int fakeapi_streams(const struct fakeapi *f, const char *target)
{
    int n = 0;
    LIST_FOREACH(l, &f->sessions)
        n += is_open(l, target);
    return n;
}

void fakeapi_close_idle(struct fakeapi *f)
{
    LIST_FOREACH(l, &f->sessions) {
        struct session *s = CONTAINER_OF(l, struct session, link);
        if (s->state == SESSION_READING)
            session_free(s);
    }
}

int fakeapi_connections(const struct fakeapi *f)
{
    return f->connections;
}

int fakeapi_count(const struct fakeapi *f)
{
    return f->n_seen;
}

const struct fakeapi_request *fakeapi_at(const struct fakeapi *f, int i)
{
    return i >= 0 && i < f->n_seen ? f->seen[i] : NULL;
}
