// SPDX-License-Identifier: Apache-2.0
#include "tests/fakeapi/conn.h"

#include "common/base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONN_MAX = 64 * 1024 * 1024 };

struct conn {
    int fd;
    SSL *ssl;
    struct loop_poll *poll;
    struct loop_timer *later; // reports a close that was found while writing
    const struct conn_ops *ops;
    void *ctx;
    struct buf in, out;
    bool finishing, gone;
};

// Both return bytes moved, 0 = not now, -1 = the connection is gone.
static ssize_t tls_result(struct conn *c, int r)
{
    if (r > 0)
        return r;
    int e = SSL_get_error(c->ssl, r);
    ERR_clear_error();
    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static ssize_t read_some(struct conn *c, char *p, size_t n)
{
    if (c->ssl)
        return tls_result(c, SSL_read(c->ssl, p, (int)n));
    ssize_t r = recv(c->fd, p, n, 0);
    return r > 0 ? r : r < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static ssize_t write_some(struct conn *c, const char *p, size_t n)
{
    if (c->ssl)
        return tls_result(c, SSL_write(c->ssl, p, (int)n));
    ssize_t r = send(c->fd, p, n, MSG_NOSIGNAL);
    return r >= 0 ? r : errno == EAGAIN || errno == EINTR ? 0 : -1;
}

static void flush(struct conn *c)
{
    while (c->out.len && !c->gone) {
        ssize_t n = write_some(c, c->out.data, c->out.len);
        if (n == 0)
            break;
        if (n < 0)
            c->gone = true;
        else
            buf_consume(&c->out, (size_t)n);
    }
    if (c->finishing && !c->out.len)
        c->gone = true;
    struct err ignored = ERR_INIT;
    (void)loop_poll_set(c->poll, c->gone ? 0 : LOOP_READ | (c->out.len ? LOOP_WRITE : 0), &ignored);
    if (c->gone)
        loop_timer_arm(c->later, 0);
}

static void on_later(void *ctx)
{
    struct conn *c = ctx;
    c->ops->closed(c->ctx);
}

static void on_ready(void *ctx, int events)
{
    (void)events;
    struct conn *c = ctx;
    char bytes[16 * 1024];
    size_t before = c->in.len;
    ssize_t n;
    while ((n = read_some(c, bytes, sizeof bytes)) > 0)
        (void)buf_append(&c->in, bytes, (size_t)n);
    if (n < 0)
        c->gone = true;
    flush(c);
    if (c->in.len > before)
        c->ops->input(c->ctx);
}

struct conn *conn_new(struct loop *loop, int fd, SSL_CTX *tls, const struct conn_ops *ops, void *ctx)
{
    struct conn *c = xcalloc(1, sizeof *c);
    *c = (struct conn){.fd = fd, .ops = ops, .ctx = ctx, .in = BUF_INIT(CONN_MAX), .out = BUF_INIT(CONN_MAX)};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); // a chunk is a segment
    if (tls) {
        c->ssl = SSL_new(tls);
        SSL_set_mode(c->ssl, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_ENABLE_PARTIAL_WRITE);
        SSL_set_fd(c->ssl, fd);
        SSL_set_accept_state(c->ssl);
    }
    c->later = loop_timer_new(loop, on_later, c);
    c->poll = loop_poll_new(loop, fd, on_ready, c);
    flush(c);
    return c;
}

void conn_free(struct conn *c)
{
    if (!c)
        return;
    loop_poll_free(c->poll);
    loop_timer_free(c->later);
    if (c->ssl && !c->gone)
        SSL_shutdown(c->ssl);
    SSL_free(c->ssl);
    ERR_clear_error();
    close(c->fd);
    buf_done(&c->in);
    buf_done(&c->out);
    free(c);
}

struct buf *conn_input(struct conn *c)
{
    return &c->in;
}

void conn_write(struct conn *c, const char *bytes, size_t n)
{
    (void)buf_append(&c->out, bytes, n);
    flush(c);
}

void conn_finish(struct conn *c)
{
    c->finishing = true;
    flush(c);
}

bool conn_resumed(const struct conn *c)
{
    return c->ssl && SSL_session_reused(c->ssl);
}

void conn_reset(struct conn *c)
{
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
}
