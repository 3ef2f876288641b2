// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/sink.h"

#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct sink {
    struct loop *loop;
    struct loop_poll *poll; // NULL until the descriptor was full once
    struct buf queue;
    size_t sent; // bytes at the front of the queue that are written
    int fd, shared_fd;
    int restore_flags; // flags of the shared descriptor; -1 = nothing to restore
    bool high, broken;
    loop_fn drained;
    void *ctx;
};

static void open_again(struct sink *s)
{
    char path[64];
    struct stat st;
    s->fd = s->shared_fd;
    if (fstat(s->shared_fd, &st) != 0 || S_ISREG(st.st_mode)) // a file takes everything at once, at its own offset
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->shared_fd);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0) {
        s->fd = fd;
        return;
    }
    // The descriptor is a socket, or another user's pipe. So everybody who shares it sees O_NONBLOCK until the end.
    s->restore_flags = fcntl(s->shared_fd, F_GETFL);
    if (s->restore_flags >= 0)
        fcntl(s->shared_fd, F_SETFL, s->restore_flags | O_NONBLOCK);
}

struct sink *sink_new(struct loop *loop, int fd, loop_fn drained, void *ctx)
{
    struct sink *s = xcalloc(1, sizeof *s);
    *s = (struct sink){.loop = loop, .shared_fd = fd, .restore_flags = -1, .drained = drained, .ctx = ctx};
    s->queue = BUF_INIT(SINK_MAX);
    open_again(s);
    return s;
}

void sink_free(struct sink *s)
{
    if (!s)
        return;
    loop_poll_free(s->poll);
    if (s->restore_flags >= 0)
        fcntl(s->shared_fd, F_SETFL, s->restore_flags);
    if (s->fd != s->shared_fd)
        close(s->fd);
    buf_done(&s->queue);
    free(s);
}

struct buf *sink_queue(struct sink *s)
{
    return &s->queue;
}

size_t sink_queued(const struct sink *s)
{
    return s->queue.len - s->sent;
}

static void compact(struct sink *s)
{
    if (s->sent == s->queue.len)
        buf_reset(&s->queue);
    else
        buf_consume(&s->queue, s->sent);
    s->sent = 0;
    s->queue.over = false; // what had no room is lost; now there is room again
}

static void on_writable(void *ctx, int events)
{
    struct sink *s = ctx;
    struct err ignored = ERR_INIT;
    (void)events;
    loop_poll_set(s->poll, 0, &ignored);
    sink_send(s);
    bool low = sink_queued(s) <= SINK_LOW;
    if ((s->high && low) || sink_queued(s) == 0) {
        s->high = false;
        s->drained(s->ctx);
    }
}

static void wait_writable(struct sink *s)
{
    struct err err = ERR_INIT;
    if (!s->poll)
        s->poll = loop_poll_new(s->loop, s->fd, on_writable, s);
    if (!s->poll || loop_poll_set(s->poll, LOOP_WRITE, &err) < 0)
        s->broken = true; // it is full, and nothing can tell when it has room again
}

void sink_send(struct sink *s)
{
    while (!s->broken && sink_queued(s) > 0) {
        const char *data = s->queue.data + s->sent;
        ssize_t n = write(s->fd, data, sink_queued(s));
        if (n >= 0) {
            s->sent += (size_t)n;
        } else if (errno == EAGAIN) {
            wait_writable(s);
            break;
        } else if (errno != EINTR) {
            s->broken = true;
        }
    }
    if (s->broken)
        s->sent = s->queue.len;
    compact(s);
    s->high = s->high || s->queue.len > SINK_HIGH;
}
