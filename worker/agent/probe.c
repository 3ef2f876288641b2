// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/probe.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/agent/rank_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 256 * 1024, READ_BYTES = 16 * 1024, ARGS_MAX = 8 };

struct probe {
    struct probe_config config;
    const char *argv[ARGS_MAX + 1];
    struct process *process; // NULL = it does not run
    struct loop_poll *poll;
    struct loop_timer *silent_timer, *again_timer;
    int fd; // the pipe of its standard output; -1 = none
    struct buf line;
    struct arena memory; // holds `gpus`
    struct gpu *gpus;
    size_t n;
    uint64_t version;
    bool over;        // there is nothing to watch, or the program cannot run here
    bool said_silent; // the log has a line about the silence; said_ended: about the end
    bool said_ended;
};

bool probe_wanted(const char *const *env, int pod_gpus)
{
    const char *visible = environment_get(env, "NVIDIA_VISIBLE_DEVICES");
    return pod_gpus > 0 || (!str_empty(visible) && !str_eq(visible, "void") && !str_eq(visible, "none"));
}

static void say(struct probe *p, const char *what, const char *why)
{
    rank_output_say(agent_output(p->config.agent), "GPUs: %s%s%s", what, str_empty(why) ? "" : ": ", why ? why : "");
}

static const struct gpu *find(const struct gpu *gpus, size_t n, const char *uuid)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(gpus[i].uuid, uuid))
            return &gpus[i];
    return NULL;
}

// Something that should be told at once. Counters of a GPU that was not known before do not count.
static bool has_trouble(const struct gpu *now, const struct gpu *before)
{
    bool lost = now->lost && !(before && before->lost);
    bool xid = before && now->values[GPU_XID] > 0 && now->values[GPU_XID] != before->values[GPU_XID];
    bool ecc = before && now->values[GPU_ECC_UNCORRECTED] > before->values[GPU_ECC_UNCORRECTED];
    return lost || xid || ecc;
}

static void tell(struct probe *p, const struct gpu *g)
{
    if (g->lost)
        rank_output_say(agent_output(p->config.agent),
                        "GPUs: GPU %d (%s, %s) fell off the bus: the driver cannot reach it any more", g->index,
                        g->name, g->uuid);
    else
        rank_output_say(agent_output(p->config.agent), "GPUs: GPU %d (%s, %s): Xid %lld, %lld uncorrected ECC errors",
                        g->index, g->name, g->uuid, (long long)g->values[GPU_XID],
                        (long long)MAX(g->values[GPU_ECC_UNCORRECTED], 0));
}

static void take_gpus(struct probe *p, struct arena *memory, struct gpu *gpus, size_t n)
{
    bool urgent = false;
    for (size_t i = 0; i < n; i++)
        if (has_trouble(&gpus[i], find(p->gpus, p->n, gpus[i].uuid))) {
            tell(p, &gpus[i]);
            urgent = true;
        }
    arena_done(&p->memory);
    p->memory = *memory;
    *memory = ARENA_INIT;
    p->gpus = gpus;
    p->n = n;
    p->version++;
    p->config.changed(p->config.ctx, urgent);
}

static void take_line(struct probe *p, const char *text, size_t len)
{
    _cleanup_(arena_done) struct arena memory = ARENA_INIT;
    struct err err = ERR_INIT;
    struct json *line = NULL;
    struct gpu *gpus = NULL;
    size_t n = 0;
    const char *error = NULL;
    if (json_parse(text, len, NULL, &memory, &line, &err) == 0)
        error = json_str(json_get(line, "error"), &memory);
    if (err.code == 0 && !error)
        gpu_read_list(json_get(line, "gpus"), &memory, &gpus, &n, &err);
    if (err.code == 0 && !error) {
        take_gpus(p, &memory, gpus, n);
        return;
    }
    say(p, "not watched", error ? error : err.msg);
    p->over = true;
}

static void close_pipe(struct probe *p)
{
    loop_poll_free(TAKE_PTR(p->poll));
    file_close(&p->fd);
    buf_reset(&p->line);
}

static void on_readable(void *ctx, int events)
{
    struct probe *p = ctx;
    char bytes[READ_BYTES];
    (void)events;
    ssize_t n = read(p->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || buf_append(&p->line, bytes, (size_t)n) < 0) {
        close_pipe(p); // it has ended, or prints something else; closing the pipe ends it
        return;
    }
    loop_timer_arm(p->silent_timer, PROBE_SILENT_MS);
    p->said_silent = p->said_ended = false;
    for (const char *end; p->fd >= 0 && (end = memchr(buf_str(&p->line), '\n', p->line.len));) {
        size_t len = (size_t)(end - buf_str(&p->line));
        take_line(p, buf_str(&p->line), len);
        buf_consume(&p->line, len + 1);
    }
}

static void on_silent(void *ctx)
{
    struct probe *p = ctx;
    if (p->process && !p->said_silent)
        say(p, "the driver has not answered for a minute; the values are its last ones", NULL);
    p->said_silent = true;
}

static void start_again(struct probe *p, const char *what, const char *why)
{
    if (!p->said_ended)
        say(p, what, why);
    p->said_ended = true;
    loop_timer_arm(p->again_timer, PROBE_AGAIN_MS);
}

static void on_process(void *ctx, enum process_event event)
{
    struct probe *p = ctx;
    if (event != PROCESS_GONE)
        return;
    while (p->fd >= 0) { // read what it printed before it ended, up to the end of the pipe
        size_t before = p->line.len;
        uint64_t version = p->version;
        on_readable(p, LOOP_READ);
        if (p->line.len == before && p->version == version)
            break;
    }
    close_pipe(p);
    loop_timer_disarm(p->silent_timer);
    if (!p->over && process_error(p->process)[0]) {
        say(p, "not watched", process_error(p->process));
        p->over = true;
    } else if (!p->over) {
        start_again(p, "the program that watches them has ended; the agent starts it again every minute", NULL);
    }
    process_free(TAKE_PTR(p->process));
}

static void start(void *ctx)
{
    const char *later = "not watched yet; the agent tries it again every minute";
    struct probe *p = ctx;
    struct err err = ERR_INIT;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        start_again(p, later, strerror(errno));
        return;
    }
    const struct process_config config = {.loop = p->config.loop,
                                          .reaper = agent_reaper(p->config.agent),
                                          .argv = p->argv,
                                          .env = p->config.env,
                                          .out = ends[1],
                                          .err = p->config.err,
                                          .fn = on_process,
                                          .ctx = p};
    p->fd = ends[0];
    p->process = process_start(&config, &err);
    close(ends[1]);
    if (!p->process) {
        start_again(p, later, err.msg);
        close_pipe(p);
        return;
    }
    (void)fcntl(p->fd, F_SETFL, O_NONBLOCK);
    p->poll = loop_poll_read(p->config.loop, p->fd, on_readable, p, &err);
    if (!p->poll)
        say(p, "not watched", err.msg);
    loop_timer_arm(p->silent_timer, PROBE_SILENT_MS);
}

struct probe *probe_new(const struct probe_config *c)
{
    struct probe *p = xcalloc(1, sizeof *p);
    p->config = *c;
    p->fd = -1;
    p->line = BUF_INIT(LINE_MAX_BYTES);
    for (size_t i = 0; i < ARGS_MAX && c->argv[i]; i++)
        p->argv[i] = xstrdup(c->argv[i]);
    p->silent_timer = loop_timer_new(c->loop, on_silent, p);
    p->again_timer = loop_timer_new(c->loop, start, p);
    start(p);
    return p;
}

void probe_free(struct probe *p)
{
    if (!p)
        return;
    close_pipe(p);
    process_free(p->process);
    loop_timer_free(p->silent_timer);
    loop_timer_free(p->again_timer);
    buf_done(&p->line);
    arena_done(&p->memory);
    for (size_t i = 0; i < ARGS_MAX; i++)
        free((char *)p->argv[i]);
    free(p);
}

uint64_t probe_version(const struct probe *p)
{
    return p ? p->version : 0;
}

// CUDA names a GPU by its number, its UUID, or the beginning of its UUID.
static bool is_named(const struct gpu *g, const char *name, size_t len)
{
    int64_t number;
    char text[GPU_TEXT_MAX + 1];
    if (len == 0 || len >= sizeof text)
        return false;
    memcpy(text, name, len);
    text[len] = '\0';
    return str_to_i64(text, &number) ? number == g->index : str_starts(g->uuid, text);
}

static bool has(const char *own, const struct gpu *g)
{
    for (const char *at = own; *at;) {
        size_t len = strcspn(at, ",");
        if (is_named(g, at, len))
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

static const char *own_gpus(const struct probe *p, const struct supervisor_process *s, struct arena *a)
{
    struct environment_group group = s->command->env;
    struct gpus_view view;
    struct err err = ERR_INIT;
    if (group.gpus.count == GPUS_UNKNOWN)
        group.gpus.count = p->config.pod_gpus;
    return environment_gpus(p->config.env, &group, s->spec, a, &view, &err) == 0 ? view.own : "";
}

static void add_ranks(const struct probe *p, const struct supervisor *s, size_t *left, struct gpu *gpus,
                      struct arena *a)
{
    for (size_t i = 0; i < supervisor_process_count(s); i++) {
        const struct supervisor_process *process = supervisor_process_at(s, i);
        const char *own = own_gpus(p, process, a);
        for (size_t k = 0; k < p->n; k++)
            if (*left && has(own, &gpus[k])) {
                --*left;
                gpus[k].ranks[gpus[k].n_ranks++] =
                    (struct gpu_rank){.group = supervisor_group(s), .rank = process->spec->rank};
            }
    }
}

void probe_write(const struct probe *p, struct json_writer *w)
{
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    struct gpu *gpus = arena_array(&a, p->n, sizeof *gpus);
    size_t most = 0, left = GPU_RANKS_MAX;
    for (size_t i = 0; i < agent_group_count(p->config.agent); i++)
        most += supervisor_process_count(agent_group_at(p->config.agent, i));
    for (size_t i = 0; i < p->n; i++) {
        gpus[i] = p->gpus[i];
        gpus[i].ranks = arena_array(&a, MIN(most, left), sizeof *gpus[i].ranks);
        gpus[i].n_ranks = 0;
    }
    for (size_t i = 0; i < agent_group_count(p->config.agent); i++)
        add_ranks(p, agent_group_at(p->config.agent, i), &left, gpus, &a);
    writer_list(w, "gpus");
    for (size_t i = 0; i < p->n; i++)
        gpu_write(w, &gpus[i]);
    writer_list_end(w);
}
