// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/template.h"

#include "common/base/arena.h"
#include "common/base/file.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "worker/agent/environment.h"
#include "worker/agent/lines.h"
#include "worker/agent/rank_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SAID_MAX = 1024,
    PASSED = 4,
    SOURCE_MAX = 64 << 20,
    ASKED_MAX = FILE_SEND_MAX / PASSED, // requests in one packet
    STACKS_MS = 5000                    // for printing them
};

enum state { STATE_NONE, STATE_IMPORTING, STATE_READY, STATE_USELESS };

struct fork_request {
    struct list link;
    struct template *template;
    fork_fn fn;
    void *ctx;
    int fd;             // the agent's end of its socket
    int passed[PASSED]; // the other end, standard output and error, environment; -1 once they are sent
    struct loop_poll *poll;
    bool asked, lost; // lost: the template that got the request is gone
};

struct template
{
    struct template_config config;
    struct buf source; // what it was made from, for the comparison
    struct arena arena;
    const char *const *env; // its environment at the start
    enum state state;
    struct process *process;
    int64_t oom_before; // oom_kills() at its start
    struct output_process *output;
    int fd; // -1 = none
    struct loop_poll *poll;
    struct loop_timer *turn, *import_timer, *idle_timer;
    struct list requests; // oldest first
    char why[SAID_MAX];   // why it does not fork
};

void fork_request_cancel(struct fork_request *b)
{
    if (!b)
        return;
    loop_timer_arm(b->template->turn, 0); // for the next request
    list_remove(&b->link);
    loop_poll_free(b->poll);
    file_close(&b->fd); // if a rank was forked in the meantime, it ends
    for (size_t i = 0; i < PASSED; i++)
        file_close(&b->passed[i]);
    free(b);
}

static void fork_request_end(struct fork_request *b, int pid, const char *why_not)
{
    fork_fn fn = b->fn;
    void *ctx = b->ctx;
    int fd = b->fd;
    if (pid)
        b->fd = -1;
    fork_request_cancel(b);
    fn(ctx, pid, pid ? fd : -1, why_not);
}

// The process

static void lose_requests(struct template *t)
{
    LIST_FOREACH(l, &t->requests) {
        struct fork_request *b = CONTAINER_OF(l, struct fork_request, link);
        b->lost = b->asked;
    }
    loop_timer_arm(t->turn, 0);
}

static void forget_process(struct template *t)
{
    lose_requests(t);
    loop_timer_disarm(t->import_timer);
    loop_poll_free(TAKE_PTR(t->poll));
    file_close(&t->fd);
    process_free(TAKE_PTR(t->process));
    rank_output_close(TAKE_PTR(t->output));
}

static void become_useless(struct template *t, const char *why)
{
    t->state = STATE_USELESS;
    snprintf(t->why, sizeof t->why, "%s", why);
    loop_timer_arm(t->turn, 0);
}

// Takes a message. "R": the template is ready. "N" and a reason: it will not be.
static void on_said(void *ctx, int events)
{
    struct template *t = ctx;
    char said[SAID_MAX];
    bool in_time = t->state == STATE_IMPORTING;
    ssize_t n = recv(t->fd, said, sizeof said - 1, MSG_DONTWAIT);
    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    said[MAX(n, (ssize_t)0)] = '\0';
    if (n <= 0)
        loop_poll_free(TAKE_PTR(t->poll)); // its exit says more
    else if (said[0] == 'R' && in_time)
        t->state = STATE_READY;
    else if (said[0] == 'N')
        become_useless(t, said + 1);
    if (in_time)
        loop_timer_disarm(t->import_timer);
    loop_timer_arm(t->turn, 0);
}

static void describe_exit(const struct template *t, char *out, size_t size)
{
    struct process_exit e = process_exit(t->process);
    if (process_error(t->process)[0])
        snprintf(out, size, "%s", process_error(t->process));
    else if (e.signal)
        snprintf(out, size, "it was ended by signal %d (%s)%s", e.signal, strsignal(e.signal),
                 e.signal == SIGKILL && !e.ours && oom_tell(t->config.oom, t->oom_before)
                     ? ": the memory of the container was used up"
                     : "");
    else
        snprintf(out, size, "it exited with code %d; its output says why", e.code);
}

// A template that was killed while it imported may succeed the next time. One that failed by itself would fail again.
static void on_exited(struct template *t)
{
    char why[SAID_MAX];
    if (t->poll)
        on_said(t, LOOP_READ); // its last message
    loop_timer_disarm(t->import_timer);
    if (t->output)
        rank_output_drain(t->output);
    describe_exit(t, why, sizeof why);
    if (t->state == STATE_IMPORTING && !process_exit(t->process).signal)
        become_useless(t, why);
    if (t->state != STATE_USELESS) {
        rank_output_say(t->config.output, "template: %s; the next rank that starts gets a new one", why);
        snprintf(t->why, sizeof t->why, "%s", why);
        t->state = STATE_NONE;
    }
    lose_requests(t);
}

static void on_process(void *ctx, enum process_event event)
{
    struct template *t = ctx;
    if (event == PROCESS_EXITED)
        on_exited(t);
    else if (event == PROCESS_GONE)
        forget_process(t);
}

// First the template has to print where it hangs, then it has to end.
static void on_import_timer(void *ctx)
{
    struct template *t = ctx;
    char why[SAID_MAX];
    if (t->state == STATE_USELESS) {
        forget_process(t);
        return;
    }
    snprintf(why, sizeof why, "its imports take more than %lld s; its output says where they are",
             (long long)t->config.import_ms / 1000);
    become_useless(t, why);
    kill(process_pid(t->process), SIGRTMAX - 1);
    loop_timer_arm(t->import_timer, STACKS_MS);
}

static void on_idle_timer(void *ctx)
{
    struct template *t = ctx;
    t->state = t->state == STATE_USELESS ? STATE_USELESS : STATE_NONE;
    forget_process(t);
}

static int listen_to_it(struct template *t, struct err *err)
{
    t->poll = loop_poll_read(t->config.loop, t->fd, on_said, t, err);
    return t->poll ? 0 : err->code;
}

static int start(struct template *t, const struct template_source *s, struct err *err)
{
    int ends[2], fds[2];
    char prefix[LINES_PREFIX_MAX];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return err_set(err, ERR_UNAVAILABLE, "cannot open a socket for it: %s", strerror(errno));
    t->fd = ends[0];
    snprintf(prefix, sizeof prefix, "[%s] ", s->who);
    t->output = rank_output_open(t->config.output, prefix, fds, err);
    if (t->output) {
        const struct process_config config = {.loop = t->config.loop,
                                              .reaper = t->config.reaper,
                                              .argv = s->argv,
                                              .env = s->env,
                                              .dir = s->dir,
                                              .in = ends[1],
                                              .out = fds[0],
                                              .err = fds[1],
                                              .fn = on_process,
                                              .ctx = t};
        t->process = process_start(&config, err);
        close(fds[0]);
        close(fds[1]);
    }
    close(ends[1]);
    if (!t->process)
        return err->code;
    return listen_to_it(t, err);
}

static void end_preforked(struct template_preforked *preforked)
{
    file_close(&preforked->start);
    file_close(&preforked->control);
    *preforked = (struct template_preforked){0, -1, -1};
}

// A preforked template has the agent's environment, and prints to the agent's output.
static int adopt(struct template *t, const struct template_source *s, struct err *err)
{
    struct template_preforked *preforked = t->config.preforked;
    const struct process_config config = {
        .loop = t->config.loop, .reaper = t->config.reaper, .argv = s->argv, .dir = s->dir, .fn = on_process, .ctx = t};
    t->env = environment_copy((const char *const *)environ, &t->arena);
    t->process = process_adopt(&config, preforked->pid, preforked->start, err);
    preforked->start = -1;
    if (t->process) {
        t->fd = preforked->control;
        preforked->control = -1;
    }
    end_preforked(preforked);
    if (!t->process)
        return err->code;
    t->state = STATE_READY;
    return listen_to_it(t, err);
}

// Appends all strings, each with its NUL.
static void put_all(struct buf *b, const char *const *list)
{
    for (; *list; list++)
        buf_append(b, *list, strlen(*list) + 1);
}

void template_want(struct template *t, const struct template_source *s)
{
    struct err err = ERR_INIT;
    struct buf source = BUF_INIT(SOURCE_MAX);
    const char *const dir[] = {s->dir ? s->dir : "", NULL};
    put_all(&source, dir);
    put_all(&source, s->argv);
    put_all(&source, s->env);
    bool same = source.len == t->source.len && memcmp(source.data, t->source.data, source.len) == 0;
    loop_timer_disarm(t->idle_timer);
    if (same && t->state != STATE_NONE) {
        buf_done(&source);
        return;
    }
    buf_done(&t->source);
    t->source = source;
    arena_done(&t->arena);
    snprintf(t->why, sizeof t->why, "another one has taken its place");
    forget_process(t);
    t->oom_before = oom_kills(t->config.oom->root);
    if (t->config.preforked && t->config.preforked->pid && adopt(t, s, &err) == 0)
        return;
    forget_process(t);
    t->env = environment_copy(s->env, &t->arena);
    t->state = STATE_IMPORTING;
    if (start(t, s, &err) < 0) {
        become_useless(t, err.msg);
        forget_process(t);
        return;
    }
    loop_timer_arm(t->import_timer, t->config.import_ms);
}

// Requests for ranks

// Writes the directory, then the difference between the rank's environment and the one of the template, each string
// with its NUL. The rank keeps the template's other variables: python3 may be a script that sets variables, and imports
// may set some.
static int environment_file(const struct template *t, const struct fork_config *c)
{
    _cleanup_(buf_done) struct buf b = BUF_INIT(SOURCE_MAX);
    _cleanup_(arena_done) struct arena a = ARENA_INIT;
    const char *const dir[] = {c->dir ? c->dir : "", NULL};
    put_all(&b, dir);
    put_all(&b, environment_changes(t->env, c->env, &a));
    return file_in_memory("environment", &b);
}

// Takes a message. "P" and the pid of the rank, or "N" and why there is none. Returns false if no message has come yet.
static bool take_answer(struct fork_request *b)
{
    char said[SAID_MAX];
    int64_t pid;
    ssize_t n = recv(b->fd, said, sizeof said - 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    said[MAX(n, (ssize_t)0)] = '\0';
    if (said[0] == 'P' && str_to_i64(said + 1, &pid) && pid > 1 && pid <= INT32_MAX)
        fork_request_end(b, (int)pid, NULL);
    else
        fork_request_end(b, 0, said[0] == 'N' ? said + 1 : "it ended while it forked");
    return true;
}

static void on_answer(void *ctx, int events)
{
    (void)events;
    take_answer(ctx);
}

static bool send_passed(const struct template *t, struct fork_request *const *requests, size_t n)
{
    char words[ASKED_MAX];
    int passed[ASKED_MAX * PASSED] = {0}; // n is at least 1, which the compiler does not see
    memset(words, 'F', n);
    for (size_t i = 0; i < n; i++)
        memcpy(passed + i * PASSED, requests[i]->passed, sizeof requests[i]->passed);
    return file_send(t->fd, words, n, passed, n * PASSED);
}

static int listen_to(struct fork_request *b, struct err *err)
{
    for (size_t i = 0; i < PASSED; i++)
        file_close(&b->passed[i]);
    b->asked = true;
    b->poll = loop_poll_read(b->template->config.loop, b->fd, on_answer, b, err);
    return b->poll ? 0 : err->code;
}

// Sends all waiting requests in one packet. The template forks their ranks together.
static void ask(struct template *t)
{
    struct fork_request *requests[ASKED_MAX];
    struct err err = ERR_INIT;
    size_t n = 0;
    LIST_FOREACH(l, &t->requests) {
        struct fork_request *b = CONTAINER_OF(l, struct fork_request, link);
        if (!b->asked && n < ASKED_MAX)
            requests[n++] = b;
    }
    if (!send_passed(t, requests, n)) {
        err_set(&err, ERR_UNAVAILABLE, "it cannot be asked: %s", strerror(errno));
        fork_request_end(requests[0], 0, err.msg); // the others try again
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (listen_to(requests[i], &err) < 0) {
            requests[i]->lost = true;
            snprintf(t->why, sizeof t->why, "%s", err.msg);
        }
}

// Returns the oldest request that can continue. NULL: all requests wait for the template.
static struct fork_request *next_request(const struct template *t)
{
    LIST_FOREACH(l, &t->requests) {
        struct fork_request *b = CONTAINER_OF(l, struct fork_request, link);
        if (b->lost || (!b->asked && t->state != STATE_IMPORTING))
            return b;
    }
    return NULL;
}

// Handles one request in each turn of the loop, because its end may end others.
static void on_turn(void *ctx)
{
    struct template *t = ctx;
    struct fork_request *b = next_request(t);
    if (!b)
        return;
    loop_timer_arm(t->turn, 0);
    if (b->lost) {
        if (!take_answer(b))
            fork_request_end(b, 0, t->why);
    } else if (t->state == STATE_READY) {
        ask(t);
    } else {
        fork_request_end(b, 0, t->why);
    }
}

struct fork_request *template_fork(struct template *t, const struct fork_config *c, struct err *err)
{
    int ends[2] = {-1, -1};
    struct fork_request *b = xcalloc(1, sizeof *b);
    bool open =
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0;
    *b = (struct fork_request){.template = t,
                               .fn = c->fn,
                               .ctx = c->ctx,
                               .fd = ends[0],
                               .passed = {ends[1], fcntl(c->out, F_DUPFD_CLOEXEC, 3), fcntl(c->err, F_DUPFD_CLOEXEC, 3),
                                          environment_file(t, c)}};
    list_append(&t->requests, &b->link);
    for (size_t i = 0; i < PASSED; i++)
        open = open && b->passed[i] >= 0;
    loop_timer_arm(t->turn, 0);
    if (open)
        return b;
    err_set(err, ERR_UNAVAILABLE, "cannot open files for it: %s", strerror(errno));
    fork_request_cancel(b);
    return NULL;
}

// The whole life

static bool take_number(const char *name, int *ret)
{
    const char *said = getenv(name);
    int64_t number;
    bool ok = said && str_to_i64(said, &number) && number > 0 && number <= INT32_MAX;
    *ret = ok ? (int)number : -1;
    unsetenv(name);
    return ok;
}

struct template_preforked template_preforked_take(void)
{
    struct template_preforked preforked;
    bool has_pid = take_number("CADRE_PREFORKED", &preforked.pid);
    bool has_start = take_number("CADRE_PREFORKED_START", &preforked.start);
    bool has_control = take_number("CADRE_PREFORKED_CONTROL", &preforked.control);
    if (!has_pid || !has_start || !has_control || fcntl(preforked.start, F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(preforked.control, F_SETFD, FD_CLOEXEC) != 0)
        return (struct template_preforked){0, -1, -1};
    return preforked;
}

struct template *template_new(const struct template_config *c)
{
    struct template *t = xcalloc(1, sizeof *t);
    t->config = *c;
    t->fd = -1;
    t->source = BUF_INIT(SOURCE_MAX);
    list_init(&t->requests);
    t->turn = loop_timer_new(c->loop, on_turn, t);
    t->import_timer = loop_timer_new(c->loop, on_import_timer, t);
    t->idle_timer = loop_timer_new(c->loop, on_idle_timer, t);
    return t;
}

void template_free(struct template *t)
{
    if (!t)
        return;
    forget_process(t);
    loop_timer_free(t->turn);
    loop_timer_free(t->import_timer);
    loop_timer_free(t->idle_timer);
    buf_done(&t->source);
    arena_done(&t->arena);
    free(t);
}

void template_rest(struct template *t)
{
    if (t->process)
        loop_timer_arm(t->idle_timer, t->config.idle_ms);
}
