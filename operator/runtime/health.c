// SPDX-License-Identifier: Apache-2.0
#include "operator/runtime/health.h"

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/runtime/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    MAX_CONNS = 64,
    MAX_REQUEST = 4096,
    MAX_REPLY = 4 << 20,
    MAX_DRAIN = 64 << 10,
    DEADLINE_MS = 10000,
};

struct health {
    struct loop *loop;
    struct health_options options;
    struct listener *listener;
    struct list conns; // oldest first
    int n_conns;
};

enum conn_state { CONN_READING, CONN_WRITING, CONN_DRAINING };

struct conn {
    struct health *health;
    struct list link;
    int fd;
    struct loop_poll *poll;
    struct loop_timer *deadline; // for the whole exchange, so that no client occupies a connection for long
    enum conn_state state;
    struct buf in, out;
    size_t drained;
};

static void conn_free(struct conn *c)
{
    loop_poll_free(c->poll);
    loop_timer_free(c->deadline);
    close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
    list_remove(&c->link);
    c->health->n_conns--;
    free(c);
}

static void conn_expired(void *ctx)
{
    conn_free(ctx);
}

static void put_reply(struct conn *c, const char *status, const char *extra, const char *type, const char *body,
                      size_t len, bool head)
{
    buf_printf(&c->out,
               "HTTP/1.1 %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\nX-Content-Type-Options: nosniff\r\n"
               "Connection: close\r\n\r\n",
               status, extra, type, len);
    if (!head)
        buf_append(&c->out, body, len);
}

static void put_text(struct conn *c, const char *status, const char *extra, const char *text, bool head)
{
    put_reply(c, status, extra, "text/plain; charset=utf-8", text, strlen(text), head);
}

static void put_ready(struct conn *c, bool head)
{
    const struct health_options *o = &c->health->options;
    struct buf why = BUF_INIT(MAX_REQUEST);
    if (!o->ready || o->ready(o->ctx, &why))
        put_text(c, "200 OK", "", "ok\n", head);
    else
        put_text(c, "503 Service Unavailable", "", why.len ? why.data : "not ready\n", head);
    buf_done(&why);
}

static void put_metrics(struct conn *c, bool head)
{
    struct buf text = BUF_INIT(MAX_REPLY - MAX_REQUEST);
    if (metrics_write(c->health->options.metrics, &text) == 0)
        put_reply(c, "200 OK", "", "text/plain; version=0.0.4; charset=utf-8", buf_str(&text), text.len, head);
    else
        put_text(c, "500 Internal Server Error", "", "the metrics exceed their limit\n", head);
    buf_done(&text);
}

// `line` is "GET /path?query HTTP/1.1" with a NUL at its end.
static void put_answer(struct conn *c, char *line)
{
    char *path = strchr(line, ' ');
    char *version = path ? strchr(path + 1, ' ') : NULL;
    if (!version || path[1] != '/' || !str_starts(version, " HTTP/1.")) {
        put_text(c, "400 Bad Request", "", "this port speaks HTTP/1.1\n", false);
        return;
    }
    *path++ = *version = '\0';
    path[strcspn(path, "?")] = '\0';
    bool head = str_eq(line, "HEAD");
    if (!head && !str_eq(line, "GET"))
        put_text(c, "405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD\n", false);
    else if (str_eq(path, "/healthz"))
        put_text(c, "200 OK", "", "ok\n", head);
    else if (str_eq(path, "/readyz"))
        put_ready(c, head);
    else if (str_eq(path, "/metrics") && c->health->options.metrics)
        put_metrics(c, head);
    else
        put_text(c, "404 Not Found", "", "the paths are /healthz, /readyz and /metrics\n", head);
}

static void watch(struct conn *c, enum conn_state state)
{
    struct err err = ERR_INIT;
    c->state = state;
    if (loop_poll_set(c->poll, state == CONN_WRITING ? LOOP_WRITE : LOOP_READ, &err) < 0)
        conn_free(c);
}

static bool would_block(ssize_t n)
{
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

// Answers when the head of a request is complete, or can never be complete. Later bytes are read and ignored.
static void on_request(struct conn *c)
{
    char *end = strstr(buf_str(&c->in), "\n\r\n");
    if (!end)
        end = strstr(buf_str(&c->in), "\n\n");
    if (end) {
        c->in.data[strcspn(c->in.data, "\r\n")] = '\0';
        put_answer(c, c->in.data);
    } else if (strlen(buf_str(&c->in)) < c->in.len) { // a NUL byte stopped strstr()
        put_text(c, "400 Bad Request", "", "this port speaks HTTP/1.1\n", false);
    } else if (c->in.len == c->in.cap) {
        put_text(c, "431 Request Header Fields Too Large", "", "at most 4 KiB of request\n", false);
    } else {
        return;
    }
    watch(c, CONN_WRITING);
}

static void on_readable(struct conn *c)
{
    char bytes[MAX_REQUEST];
    ssize_t n = recv(c->fd, bytes, MIN(sizeof bytes, c->in.cap - c->in.len), 0);
    if (would_block(n))
        return;
    if (n <= 0) {
        conn_free(c);
        return;
    }
    buf_append(&c->in, bytes, (size_t)n);
    on_request(c);
}

static void on_writable(struct conn *c)
{
    ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL);
    if (would_block(n))
        return;
    if (n < 0) {
        conn_free(c);
        return;
    }
    buf_consume(&c->out, (size_t)n);
    if (c->out.len)
        return;
    // If the client still sends, a close would reset the connection now, and the client could lose the answer.
    shutdown(c->fd, SHUT_WR);
    watch(c, CONN_DRAINING);
}

static void on_drain(struct conn *c)
{
    char bytes[MAX_REQUEST];
    ssize_t n = recv(c->fd, bytes, sizeof bytes, 0);
    if (would_block(n))
        return;
    c->drained += (size_t)MAX(n, 0);
    if (n <= 0 || c->drained > MAX_DRAIN)
        conn_free(c);
}

static void conn_event(void *ctx, int events)
{
    (void)events; // it never asks for more than one
    struct conn *c = ctx;
    if (c->state == CONN_READING)
        on_readable(c);
    else if (c->state == CONN_WRITING)
        on_writable(c);
    else
        on_drain(c);
}

// Makes room. The connection that was silent longest had the most time to ask.
static void drop_oldest(struct health *h)
{
    LIST_FOREACH(l, &h->conns) {
        struct conn *c = CONTAINER_OF(l, struct conn, link);
        if (c->state != CONN_WRITING) {
            conn_free(c);
            return;
        }
    }
    conn_free(CONTAINER_OF(h->conns.next, struct conn, link));
}

static void on_accept(void *ctx, int fd)
{
    struct health *h = ctx;
    if (h->n_conns >= MAX_CONNS)
        drop_oldest(h);
    struct conn *c = xcalloc(1, sizeof *c);
    c->health = h;
    c->fd = fd;
    c->in = BUF_INIT(MAX_REQUEST);
    c->out = BUF_INIT(MAX_REPLY);
    c->poll = loop_poll_new(h->loop, fd, conn_event, c);
    c->deadline = loop_timer_new(h->loop, conn_expired, c);
    list_append(&h->conns, &c->link);
    h->n_conns++;
    loop_timer_arm(c->deadline, DEADLINE_MS);
    if (c->poll)
        watch(c, CONN_READING);
    else
        conn_free(c);
}

int health_start(struct loop *loop, const struct health_options *options, struct health **ret, struct err *err)
{
    struct health *h = xcalloc(1, sizeof *h);
    h->loop = loop;
    h->options = *options;
    list_init(&h->conns);
    int r = listener_start(loop, options->address, on_accept, h, &h->listener, err);
    if (r < 0) {
        free(h);
        return r;
    }
    *ret = h;
    return 0;
}

void health_stop(struct health *h)
{
    if (!h)
        return;
    listener_stop(h->listener);
    while (!list_empty(&h->conns))
        conn_free(CONTAINER_OF(h->conns.next, struct conn, link));
    free(h);
}
