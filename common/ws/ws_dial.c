// SPDX-License-Identifier: Apache-2.0
#include "common/ws/ws_dial.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

struct attempt {
    struct ws_dial *dial;
    int fd; // -1: this attempt is over
    struct loop_poll *poll;
    struct loop_timer *limit;
};

struct ws_dial {
    struct loop *loop;
    struct ws_dial_config config;
    struct attempt attempts[WS_ADDRESSES_MAX];
    size_t begun, open;
    struct loop_timer *next;
    int error; // error of the last attempt that failed
};

static void end(struct attempt *t)
{
    loop_poll_free(TAKE_PTR(t->poll));
    loop_timer_free(TAKE_PTR(t->limit));
    file_close(&t->fd);
}

// The next attempt begins at once. If there is none, the last attempt to end reports the error.
static void failed(struct attempt *t, int error)
{
    struct ws_dial *d = t->dial;
    d->error = error;
    end(t);
    d->open--;
    if (d->begun < d->config.n || !d->open)
        loop_timer_arm(d->next, 0);
}

static void on_limit(void *ctx)
{
    failed(ctx, ETIMEDOUT);
}

static void on_events(void *ctx, int events)
{
    struct attempt *t = ctx;
    struct ws_dial *d = t->dial;
    int error = 0, fd = t->fd;
    socklen_t len = sizeof error;
    (void)events;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        failed(t, error);
        return;
    }
    loop_poll_free(TAKE_PTR(t->poll));
    t->fd = -1;
    for (size_t i = 0; i < d->begun; i++)
        end(&d->attempts[i]);
    loop_timer_disarm(d->next);
    d->config.connected(d->config.ctx, fd, (size_t)(t - d->attempts));
}

static int socket_new(const struct ws_address *a)
{
    const int idle_s = WS_DIAL_KEEPALIVE_IDLE_S, every_s = WS_DIAL_KEEPALIVE_EVERY_S, probes = WS_DIAL_KEEPALIVE_PROBES;
    int fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    if (fd < 0 || a->sa.ss_family == AF_UNIX)
        return fd;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    return fd;
}

static void begin(struct ws_dial *d, size_t i)
{
    struct attempt *t = &d->attempts[i];
    const struct ws_address *a = &d->config.list[i];
    struct err err = ERR_INIT;
    *t = (struct attempt){.dial = d, .fd = socket_new(a)};
    d->open++;
    if (t->fd < 0 || (connect(t->fd, (const struct sockaddr *)&a->sa, a->len) < 0 && errno != EINPROGRESS) ||
        !(t->poll = loop_poll_new(d->loop, t->fd, on_events, t))) {
        failed(t, errno);
        return;
    }
    loop_poll_set(t->poll, LOOP_WRITE, &err); // the next turn reports an error
    t->limit = loop_timer_new(d->loop, on_limit, t);
    loop_timer_arm(t->limit, WS_DIAL_CONNECT_MS);
    if (d->begun < d->config.n)
        loop_timer_arm(d->next, WS_DIAL_NEXT_MS);
}

static void on_next(void *ctx)
{
    struct ws_dial *d = ctx;
    if (d->begun < d->config.n)
        begin(d, d->begun++);
    else if (!d->open)
        d->config.failed(d->config.ctx, d->error);
}

struct ws_dial *ws_dial_new(struct loop *loop, const struct ws_dial_config *config)
{
    struct ws_dial *d = xcalloc(1, sizeof *d);
    d->loop = loop;
    d->config = *config;
    d->next = loop_timer_new(loop, on_next, d);
    loop_timer_arm(d->next, 0);
    return d;
}

void ws_dial_free(struct ws_dial *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->begun; i++)
        end(&d->attempts[i]);
    loop_timer_free(d->next);
    free(d);
}

bool ws_dial_tried(const struct ws_dial *d, size_t i)
{
    return i < d->begun;
}
