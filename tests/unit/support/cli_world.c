// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/cli_world.h"

#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t spawn(const char *const argv[], int out, int err)
{
    pid_t pid;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (out >= 0)
        posix_spawn_file_actions_adddup2(&actions, out, 1);
    if (err >= 0)
        posix_spawn_file_actions_adddup2(&actions, err, 2);
    assert_int_equal(posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static void set_number(const char *name, uint32_t v)
{
    char text[16];
    snprintf(text, sizeof text, "%u", v);
    setenv(name, text, 1);
}

static void start_worker(struct cli_world *w, uint32_t rank)
{
    char ticket[256], url[256];
    const char *argv[] = {WORKER, "--module", w->module, "--connect", url, w->roles ? "--roles" : NULL, w->roles, NULL};
    gateway_fixture_ticket(ticket, GATEWAY_UID, 1, rank, 0);
    snprintf(url, sizeof url, "%s/v1/connect", w->url);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", w->n);
    setenv("CADRE_TICKET", ticket, 1);
    setenv("CADRE_GROUP_UID", GATEWAY_UID, 1);
    setenv("CADRE_ATTEMPT", "1", 1);
    w->workers[rank] = spawn(argv, -1, -1);
}

static void open_gateway(struct cli_world *w, uint32_t ranks)
{
    *w = (struct cli_world){.n = ranks, .module = ACCUMULATOR_SO, .out = BUF_INIT(1 << 20), .err = BUF_INIT(1 << 20)};
    gateway_fixture_start(&w->gateway, &(struct gateway_config){.exit_wait_ms = 1}, NULL);
    snprintf(w->url, sizeof w->url, "ws://%s", w->gateway.address);
    gateway_fixture_group(&w->gateway, ranks, 1, NULL);
}

static void start_workers(struct cli_world *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        start_worker(w, i);
}

static void await_workers(struct cli_world *w)
{
    start_workers(w);
    GATEWAY_UNTIL(&w->gateway, gateway_fixture_counters(&w->gateway).workers == w->n);
}

void cli_world_start(struct cli_world *w, uint32_t ranks)
{
    open_gateway(w, ranks);
    await_workers(w);
}

void cli_world_start_roles(struct cli_world *w, uint32_t ranks, const char *module, const char *roles)
{
    open_gateway(w, ranks);
    w->module = module;
    w->roles = roles;
    await_workers(w);
}

void cli_world_start_late(struct cli_world *w, uint32_t ranks)
{
    open_gateway(w, ranks);
    w->late = true;
}

void cli_world_kill(struct cli_world *w, uint32_t rank)
{
    if (w->workers[rank] <= 0)
        return;
    kill(w->workers[rank], SIGKILL);
    waitpid(w->workers[rank], NULL, 0);
    w->workers[rank] = 0;
}

void cli_world_stop(struct cli_world *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        cli_world_kill(w, i);
    gateway_fixture_stop(&w->gateway);
    buf_done(&w->out);
    buf_done(&w->err);
}

static bool take(int fd, struct buf *out)
{
    char data[4096];
    ssize_t n = read(fd, data, sizeof data);
    if (n > 0)
        buf_append(out, data, (size_t)n);
    return n > 0 || (n < 0 && errno == EAGAIN);
}

void cli_world_run(struct cli_world *w, const char *const argv[], const char *interrupt_at)
{
    int out[2], err[2], status;
    assert_int_equal(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC | O_NONBLOCK), 0);
    buf_reset(&w->out);
    buf_reset(&w->err);
    pid_t pid = spawn(argv, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    int64_t end = clock_mono_ms(&clock_system) + 2 * PATIENCE_MS;
    for (bool more = true; more;) {
        loop_run_once(w->gateway.loop, 5);
        if (w->other)
            loop_run_once(w->other->loop, 5);
        bool a = take(out[0], &w->out), b = take(err[0], &w->err);
        more = a || b;
        if (w->interrupt_at_clients && gateway_fixture_counters(&w->gateway).clients == w->interrupt_at_clients) {
            kill(pid, w->interrupt_signal ? w->interrupt_signal : SIGINT);
            w->interrupt_at_clients = 0;
        }
        if (w->late && gateway_fixture_counters(&w->gateway).clients) {
            start_workers(w);
            w->late = false;
        }
        if (interrupt_at && (strstr(buf_str(&w->out), interrupt_at) || strstr(buf_str(&w->err), interrupt_at))) {
            kill(pid, SIGINT);
            interrupt_at = NULL;
        }
        if (clock_mono_ms(&clock_system) > end) {
            kill(pid, SIGKILL);
            end = INT64_MAX;
        }
    }
    waitpid(pid, &status, 0);
    w->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    close(out[0]);
    close(err[0]);
}

void cli_world_line(struct cli_world *w, const char *line)
{
    const char *argv[80] = {KUBECTL_CADRE};
    char *text = xmalloc(strlen(line) * 2 + sizeof w->url), *to = text;
    size_t n = 1;
    bool quoted = false;
    argv[n++] = to;
    for (const char *p = line; *p; p++) {
        if (*p == '\'') {
            quoted = !quoted;
        } else if (*p == ' ' && !quoted) {
            *to++ = '\0';
            argv[n++] = to;
        } else if (*p == '@') {
            to = stpcpy(to, w->url);
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
    cli_world_run(w, argv, NULL);
    free(text);
}
