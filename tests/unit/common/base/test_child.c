// SPDX-License-Identifier: Apache-2.0
#include "common/base/child.h"

#include "common/base/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int n_signals;

static void on_signal(void *ctx, int signo)
{
    (void)ctx;
    (void)signo;
    n_signals++;
}

static void on_child(void *ctx, int signo)
{
    (void)signo;
    loop_stop(ctx);
}

// Such as one that is ended before it is another program.
static void a_signal_of_the_child_is_not_one_of_its_parent(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct loop_signal *term = loop_signal_new(loop, SIGTERM, on_signal, NULL);
    struct loop_signal *ended = loop_signal_new(loop, SIGCHLD, on_child, loop);
    struct loop_timer *alive = loop_timer_new(loop, NULL, NULL);
    loop_timer_arm(alive, INT32_MAX);
    int status;
    pid_t pid = child_fork();
    if (pid == 0) {
        raise(SIGTERM);
        _exit(0);
    }
    loop_run(loop);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(n_signals, 0);
    loop_timer_free(alive);
    loop_signal_free(ended);
    loop_signal_free(term);
    loop_free(loop);
}

static void what_is_ignored_or_blocked_here_is_not_there(void **state)
{
    (void)state;
    sigset_t all, before, now;
    int status;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    pid_t pid = child_fork();
    if (pid == 0) {
        raise(SIGPIPE);
        _exit(0);
    }
    sigprocmask(SIG_SETMASK, &before, &now);
    assert_int_equal(sigismember(&now, SIGUSR1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    signal(SIGPIPE, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_of_the_child_is_not_one_of_its_parent),
        cmocka_unit_test(what_is_ignored_or_blocked_here_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
