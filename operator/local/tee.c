// SPDX-License-Identifier: Apache-2.0
#include "operator/local/tee.h"

#include "common/base/mem.h"
#include "worker/agent/lines.h"
#include "worker/agent/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STREAMS = 2, READ_SIZE = 64 * 1024, DRAIN_TURNS = 100 };

struct stream {
    struct tee *tee;
    int fd; // -1 = at its end
    struct loop_poll *poll;
    struct sink *sink;
    struct lines lines;
};

struct tee {
    struct loop *loop;
    void (*line)(void *ctx, uint32_t rank, const char *text, size_t len);
    void *ctx;
    struct stream streams[STREAMS];
    char scratch[READ_SIZE];
};

static void on_line(void *ctx, const char *text, size_t len)
{
    static const char prefix[] = "[rank ";
    const struct tee *t = ctx;
    const char *p = text + sizeof prefix - 1, *end = text + len;
    uint32_t rank = 0;
    if (len < sizeof prefix || memcmp(text, prefix, sizeof prefix - 1) != 0)
        return;
    for (; p < end && *p >= '0' && *p <= '9' && rank < 100000000; p++)
        rank = rank * 10 + (uint32_t)(*p - '0');
    if (end - p >= 2 && p[0] == ']' && p[1] == ' ')
        t->line(t->ctx, rank, p + 2, (size_t)(end - p) - 2);
}

static void watch(struct stream *s, bool on)
{
    struct err ignored = ERR_INIT;
    if (s->poll)
        loop_poll_set(s->poll, on ? LOOP_READ : 0, &ignored);
}

static void on_drained(void *ctx)
{
    watch(ctx, true);
}

static void stream_end(struct stream *s)
{
    loop_poll_free(TAKE_PTR(s->poll));
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    lines_flush(&s->lines, sink_queue(s->sink));
    sink_send(s->sink);
}

static bool stream_read(struct stream *s)
{
    ssize_t n = s->fd >= 0 ? read(s->fd, s->tee->scratch, READ_SIZE) : -1;
    if (n > 0) {
        lines_add(&s->lines, s->tee->scratch, (size_t)n, sink_queue(s->sink));
        sink_send(s->sink);
    } else if (s->fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
        stream_end(s);
    }
    return n > 0;
}

static void on_readable(void *ctx, int events)
{
    struct stream *s = ctx;
    (void)events;
    stream_read(s);
    if (sink_queued(s->sink) > SINK_HIGH)
        watch(s, false);
}

struct tee *tee_new(struct loop *loop, const char *prefix,
                    void (*line)(void *ctx, uint32_t rank, const char *text, size_t len), void *ctx)
{
    struct tee *t = xcalloc(1, sizeof *t);
    t->loop = loop;
    t->line = line;
    t->ctx = ctx;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *s = &t->streams[i];
        *s = (struct stream){.tee = t, .fd = -1};
        s->sink = sink_new(loop, i ? STDERR_FILENO : STDOUT_FILENO, on_drained, s);
        lines_init(&s->lines, prefix);
        s->lines.heard = on_line;
        s->lines.ctx = t;
    }
    return t;
}

void tee_free(struct tee *t)
{
    if (!t)
        return;
    for (int i = 0; i < STREAMS; i++) {
        stream_end(&t->streams[i]);
        lines_done(&t->streams[i].lines);
        sink_free(t->streams[i].sink);
    }
    free(t);
}

int tee_open(struct tee *t, int ret_fds[2], struct err *err)
{
    int ends[2];
    for (int i = 0; i < STREAMS; i++) {
        struct stream *s = &t->streams[i];
        stream_end(s);
        if (pipe2(ends, O_CLOEXEC) != 0)
            return err_set(err, ERR_UNAVAILABLE, "cannot open a pipe for the agent: %s", strerror(errno));
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        s->fd = ends[0];
        ret_fds[i] = ends[1];
        s->poll = loop_poll_new(t->loop, s->fd, on_readable, s);
        watch(s, true);
    }
    return 0;
}

void tee_drain(struct tee *t)
{
    for (int i = 0; i < STREAMS; i++)
        for (int turn = 0; turn < DRAIN_TURNS && stream_read(&t->streams[i]); turn++)
            ;
}
