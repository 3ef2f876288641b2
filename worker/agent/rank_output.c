// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/rank_output.h"

#include "common/base/file.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "worker/agent/lines.h"
#include "worker/agent/sink.h"
#include "worker/agent/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    READ_SIZE = 64 * 1024,
    DRAIN_MAX = 1024 * 1024, // a child that continues to print must not hold the loop
    QUIET_MS = 1000,         // a line without a newline (a prompt, a progress bar) is shown after this time
    STREAMS = 2,
};

struct stream { // one pipe
    struct output_process *process;
    struct sink *sink;
    struct loop_poll *poll; // NULL = the pipe is at its end
    int fd;
    struct lines lines;
};

struct output_process {
    struct list link; // of the output
    struct rank_output *output;
    struct stream streams[STREAMS];
    struct tail tail;
    struct loop_timer *quiet;
    bool closed; // by its owner: it is freed when its pipes end
};

struct rank_output {
    struct loop *loop;
    struct sink *sinks[STREAMS]; // both are the same sink if both descriptors are the same file
    struct list processes;
    bool paused;
    char *scratch; // READ_SIZE
};

static bool same_file(int a, int b)
{
    struct stat sa, sb;
    return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static bool above(const struct rank_output *o, size_t limit)
{
    return sink_queued(o->sinks[0]) > limit || sink_queued(o->sinks[1]) > limit;
}

static void watch(struct stream *s, bool on)
{
    struct err ignored = ERR_INIT;
    if (s->poll)
        loop_poll_set(s->poll, on ? LOOP_READ : 0, &ignored);
}

static void set_paused(struct rank_output *o, bool paused)
{
    if (o->paused == paused)
        return;
    o->paused = paused;
    LIST_FOREACH(l, &o->processes) {
        struct output_process *p = CONTAINER_OF(l, struct output_process, link);
        for (int i = 0; i < STREAMS; i++)
            watch(&p->streams[i], !paused);
    }
}

static void on_drained(void *ctx)
{
    struct rank_output *o = ctx;
    if (!above(o, SINK_LOW))
        set_paused(o, false);
}

struct rank_output *rank_output_new(struct loop *loop, int out, int err)
{
    struct rank_output *o = xcalloc(1, sizeof *o);
    o->loop = loop;
    o->scratch = xmalloc(READ_SIZE);
    list_init(&o->processes);
    o->sinks[0] = sink_new(loop, out, on_drained, o);
    o->sinks[1] = same_file(out, err) ? o->sinks[0] : sink_new(loop, err, on_drained, o);
    return o;
}

static void stream_end(struct stream *s)
{
    loop_poll_free(TAKE_PTR(s->poll));
    file_close(&s->fd);
    lines_flush(&s->lines, sink_queue(s->sink));
    sink_send(s->sink);
}

static void process_destroy(struct output_process *p)
{
    list_remove(&p->link);
    for (int i = 0; i < STREAMS; i++) {
        stream_end(&p->streams[i]);
        lines_done(&p->streams[i].lines);
    }
    loop_timer_free(p->quiet);
    free(p);
}

void rank_output_free(struct rank_output *o)
{
    if (!o)
        return;
    LIST_FOREACH(l, &o->processes)
        process_destroy(CONTAINER_OF(l, struct output_process, link)); // children that outlived it keep it open
    if (o->sinks[1] != o->sinks[0])
        sink_free(o->sinks[1]);
    sink_free(o->sinks[0]);
    free(o->scratch);
    free(o);
}

// Reads once. Returns false if the pipe is empty or at its end.
static bool stream_read(struct stream *s, size_t *total)
{
    struct rank_output *o = s->process->output;
    ssize_t n = s->fd >= 0 ? read(s->fd, o->scratch, READ_SIZE) : -1;
    if (n > 0) {
        tail_add(&s->process->tail, o->scratch, (size_t)n);
        lines_add(&s->lines, o->scratch, (size_t)n, sink_queue(s->sink));
        *total += (size_t)n;
    } else if (s->fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
        stream_end(s);
    }
    return n > 0;
}

static bool at_end(const struct output_process *p)
{
    return p->streams[0].fd < 0 && p->streams[1].fd < 0;
}

static void on_readable(void *ctx, int events)
{
    struct stream *s = ctx;
    struct output_process *p = s->process;
    size_t total = 0;
    (void)events;
    stream_read(s, &total);
    sink_send(s->sink);
    if (lines_partial(&s->lines) && !loop_timer_armed(p->quiet))
        loop_timer_arm(p->quiet, QUIET_MS);
    if (above(p->output, SINK_HIGH))
        set_paused(p->output, true);
    if (p->closed && at_end(p))
        process_destroy(p);
}

static void flush_lines(void *ctx)
{
    struct output_process *p = ctx;
    for (int i = 0; i < STREAMS; i++) {
        lines_flush(&p->streams[i].lines, sink_queue(p->streams[i].sink));
        sink_send(p->streams[i].sink);
    }
}

static int open_stream(struct output_process *p, int i, const char *prefix, int *ret_fd, struct err *err)
{
    struct stream *s = &p->streams[i];
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot open a pipe for the output of a process: %s", strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK); // only this end: programs do not expect O_NONBLOCK on their standard output
    s->fd = ends[0];
    *ret_fd = ends[1];
    lines_init(&s->lines, prefix);
    s->poll = loop_poll_new(p->output->loop, s->fd, on_readable, s);
    if (!s->poll)
        return err_set(err, ERR_IO, "cannot watch the output of a process: the event loop takes no more files");
    watch(s, !p->output->paused);
    return 0;
}

struct output_process *rank_output_open(struct rank_output *o, const char *prefix, int ret_fds[2], struct err *err)
{
    struct output_process *p = xcalloc(1, sizeof *p);
    int r = 0;
    p->output = o;
    p->quiet = loop_timer_new(o->loop, flush_lines, p);
    list_append(&o->processes, &p->link);
    ret_fds[0] = ret_fds[1] = -1;
    for (int i = 0; i < STREAMS; i++) {
        p->streams[i] = (struct stream){.process = p, .sink = o->sinks[i], .fd = -1};
        if (r == 0)
            r = open_stream(p, i, prefix, &ret_fds[i], err);
    }
    if (r == 0)
        return p;
    for (int i = 0; i < STREAMS; i++)
        file_close(&ret_fds[i]);
    process_destroy(p);
    return NULL;
}

void rank_output_follow(struct output_process *p, void (*heard)(void *ctx, const char *text, size_t len), void *ctx)
{
    for (int i = 0; i < STREAMS; i++) {
        p->streams[i].lines.heard = heard;
        p->streams[i].lines.ctx = ctx;
    }
}

void rank_output_drain(struct output_process *p)
{
    size_t total = 0;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *s = &p->streams[i];
        while (total < DRAIN_MAX && sink_queued(s->sink) < SINK_MAX / 2 && stream_read(s, &total))
            sink_send(s->sink);
    }
    flush_lines(p);
}

void rank_output_tail(const struct output_process *p, struct buf *out)
{
    tail_get(&p->tail, out);
}

void rank_output_close(struct output_process *p)
{
    if (!p)
        return;
    p->closed = true;
    rank_output_follow(p, NULL, NULL);
    if (at_end(p))
        process_destroy(p);
}

void rank_output_say(struct rank_output *o, const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (n < 0 || sink_queued(o->sinks[1]) > SINK_MAX / 2)
        return;
    buf_printf(sink_queue(o->sinks[1]), "[agent] %s\n", line);
    sink_send(o->sinks[1]);
}

bool rank_output_pending(const struct rank_output *o)
{
    return above(o, 0);
}
