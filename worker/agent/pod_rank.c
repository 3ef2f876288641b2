// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/pod_rank.h"

#include "common/base/arena.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "worker/agent/environment.h"
#include "worker/agent/lines.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST_MAX = 8 * 1024 };

struct pod_rank {
    struct pod_rank_config config;
    char *who; // "rank 3", or "llama rank 3" where several groups share the pod
    struct process *process;
    struct output_process *output;
    struct fork_request *fork; // open while the template forks the process; `run` and `fds` wait for it
    struct arena arena;
    struct pod_rank_run run;
    int fds[2];
    struct loop_timer *never; // reports the end of a process that never existed
    struct process_exit exit; // the exit of that process
    bool told_exit;
    char *error, *slow;
    bool oom, killed;   // killed: because a client wanted it
    int64_t oom_before; // oom_kills() at its start
    struct buf last;
};

static void happened(struct pod_rank *p, enum process_event event, const struct process_exit *exit)
{
    p->config.happened(p->config.ctx, p, event, exit);
}

static void clear(struct pod_rank *p)
{
    free(TAKE_PTR(p->error));
    free(TAKE_PTR(p->slow));
    p->oom = p->killed = p->told_exit = false;
    buf_done(&p->last);
}

static void close_fds(struct pod_rank *p)
{
    for (size_t i = 0; i < ARRAY_LEN(p->fds); i++) {
        file_close(&p->fds[i]);
    }
}

// The killed process cannot print this itself.
static const char *killed_words(const struct pod_rank *p, char *out, size_t size)
{
    snprintf(out, size, "%s was killed by a client (group.kill)", p->who);
    return out;
}

static void say_exit(const struct pod_rank *p, const struct process_exit *e)
{
    char words[320];
    struct rank_output *o = p->config.output;
    if (p->error)
        rank_output_say(o, "%s: %s", p->who, p->error);
    else if (p->killed)
        rank_output_say(o, "%s", killed_words(p, words, sizeof words));
    else if (e->signal)
        rank_output_say(o, "%s: ended by signal %d (%s)%s", p->who, e->signal, strsignal(e->signal),
                        e->core  ? ", core dumped"
                        : p->oom ? ": the memory of the container was used up"
                                 : "");
    else if (e->code)
        rank_output_say(o, "%s: exit code %d", p->who, e->code);
}

static void on_exited(struct pod_rank *p)
{
    struct process_exit e = process_exit(p->process);
    const char *error = process_error(p->process);
    char words[320];
    rank_output_drain(p->output);
    rank_output_tail(p->output, &p->last);
    p->error = error[0] ? xstrdup(error) : NULL;
    p->killed = p->killed && e.signal == SIGKILL; // it may have ended by itself in the meantime
    p->oom = e.signal == SIGKILL && !e.ours && !p->killed && oom_tell(p->config.oom, p->oom_before);
    if (p->killed)
        buf_printf(&p->last, "%s%s\n", p->last.len && p->last.data[p->last.len - 1] != '\n' ? "\n" : "",
                   killed_words(p, words, sizeof words));
    say_exit(p, &e);
    happened(p, PROCESS_EXITED, &e);
}

static void on_process(void *ctx, enum process_event event)
{
    struct pod_rank *p = ctx;
    if (event == PROCESS_EXITED) {
        on_exited(p);
        return;
    }
    if (event == PROCESS_GONE) {
        process_free(TAKE_PTR(p->process));
        rank_output_close(TAKE_PTR(p->output));
    }
    happened(p, event, NULL);
}

static void on_line(void *ctx, const char *text, size_t len)
{
    const struct pod_rank *p = ctx;
    p->config.printed(p->config.ctx, p->config.rank, text, len);
}

// There never was a process. The loop reports its end as if there had been one.
static void never(struct pod_rank *p, struct process_exit exit)
{
    close_fds(p);
    p->exit = exit;
    loop_timer_arm(p->never, 0);
}

static void on_never(void *ctx)
{
    struct pod_rank *p = ctx;
    if (!p->told_exit) {
        p->told_exit = true;
        say_exit(p, &p->exit);
        loop_timer_arm(p->never, 0);
        happened(p, PROCESS_EXITED, &p->exit);
        return;
    }
    rank_output_close(TAKE_PTR(p->output));
    happened(p, PROCESS_GONE, NULL);
}

static void fail(struct pod_rank *p, const char *why)
{
    p->error = xstrdup(why);
    never(p, (struct process_exit){.code = PROCESS_EXIT_NOT_RUNNABLE});
}

static struct process_config config_of(struct pod_rank *p, const struct pod_rank_run *run)
{
    return (struct process_config){.loop = p->config.loop,
                                   .reaper = p->config.reaper,
                                   .argv = run->argv,
                                   .env = run->env,
                                   .dir = run->dir,
                                   .out = p->fds[0],
                                   .err = p->fds[1],
                                   .fn = on_process,
                                   .ctx = p};
}

static void start_alone(struct pod_rank *p, const struct pod_rank_run *run)
{
    struct err err = ERR_INIT;
    const struct process_config config = config_of(p, run);
    p->process = process_start(&config, &err);
    if (!p->process)
        fail(p, err.msg);
    close_fds(p);
}

static void start_slow(struct pod_rank *p, const struct pod_rank_run *run, const char *why)
{
    p->slow = xstrdup(why);
    rank_output_say(p->config.output, "%s: started without its template: %s", p->who, why);
    start_alone(p, run);
}

static void on_forked(void *ctx, int pid, int fd, const char *why_not)
{
    struct pod_rank *p = ctx;
    struct err err = ERR_INIT;
    const struct process_config config = config_of(p, &p->run);
    p->fork = NULL;
    p->process = pid ? process_adopt(&config, pid, fd, &err) : NULL;
    if (!p->process)
        start_slow(p, &p->run, why_not ? why_not : err.msg);
    close_fds(p);
    arena_done(&p->arena);
}

static void start_forked(struct pod_rank *p, const struct pod_rank_run *run)
{
    struct err err = ERR_INIT;
    const struct fork_config config = {
        .env = run->env, .dir = run->dir, .out = p->fds[0], .err = p->fds[1], .fn = on_forked, .ctx = p};
    p->fork = template_fork(run->template, &config, &err);
    if (!p->fork) {
        start_slow(p, run, err.msg);
        return;
    }
    p->run = (struct pod_rank_run){.argv = environment_copy(run->argv, &p->arena),
                                   .env = environment_copy(run->env, &p->arena),
                                   .dir = run->dir ? arena_strdup(&p->arena, run->dir) : NULL};
}

static void begin(struct pod_rank *p, const char *who)
{
    clear(p);
    free(p->who);
    p->who = xstrdup(who);
    p->oom_before = oom_kills(p->config.oom->root);
}

void pod_rank_fail(struct pod_rank *p, const char *who, const char *why)
{
    begin(p, who);
    fail(p, why);
}

void pod_rank_start(struct pod_rank *p, const char *who, const struct pod_rank_run *run)
{
    struct err err = ERR_INIT;
    char prefix[LINES_PREFIX_MAX];
    begin(p, who);
    snprintf(prefix, sizeof prefix, "[%s] ", who);
    p->output = rank_output_open(p->config.output, prefix, p->fds, &err);
    if (!p->output) {
        fail(p, err.msg);
        return;
    }
    if (p->config.printed)
        rank_output_follow(p->output, on_line, p);
    if (run->template)
        start_forked(p, run);
    else
        start_alone(p, run);
}

void pod_rank_stop(struct pod_rank *p, int64_t grace_ms)
{
    if (p->process)
        process_stop(p->process, grace_ms);
    if (!p->fork)
        return;
    fork_request_cancel(TAKE_PTR(p->fork));
    arena_done(&p->arena);
    int signo = grace_ms > 0 ? SIGTERM : SIGKILL;
    never(p, (struct process_exit){.code = PROCESS_EXIT_SIGNAL + signo, .signal = signo});
}

void pod_rank_kill(struct pod_rank *p)
{
    p->killed = p->process || p->fork;
    pod_rank_stop(p, 0);
}

void pod_rank_news(const struct pod_rank *p, struct pod_rank_news *ret)
{
    *ret = (struct pod_rank_news){.error = p->error ? p->error : "",
                                  .slow = p->slow ? p->slow : "",
                                  .oom = p->oom,
                                  .last = buf_str(&p->last),
                                  .last_len = p->last.len};
}

int pod_rank_number(const struct pod_rank *p)
{
    return p->config.rank;
}

struct pod_rank *pod_rank_new(const struct pod_rank_config *c)
{
    struct pod_rank *p = xcalloc(1, sizeof *p);
    *p = (struct pod_rank){.config = *c, .fds = {-1, -1}, .last = BUF_INIT(LAST_MAX)};
    p->never = loop_timer_new(c->loop, on_never, p);
    return p;
}

void pod_rank_free(struct pod_rank *p)
{
    if (!p)
        return;
    fork_request_cancel(p->fork);
    process_free(p->process);
    rank_output_close(p->output);
    loop_timer_free(p->never);
    close_fds(p);
    arena_done(&p->arena);
    clear(p);
    free(p->who);
    free(p);
}
