// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/rank_process.h"

#include "common/base/buf.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LONG_MS = 600 * 1000 }; // never reached

struct fixture {
    struct loop *loop;
    struct child_reaper *reaper;
    struct process *process;
    int pipe[2]; // what it prints
    char events[16];
    struct buf said;
    struct process_exit exit; // as it was at PROCESS_EXITED
};

static void on_event(void *ctx, enum process_event event)
{
    struct fixture *f = ctx;
    strncat(f->events, event == PROCESS_STARTED ? "s" : event == PROCESS_EXITED ? "x" : "g", 2);
    if (event == PROCESS_EXITED)
        f->exit = process_exit(f->process);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->reaper = child_reaper_new(f->loop);
    f->said = BUF_INIT(1024 * 1024);
    *state = f;
    return pipe2(f->pipe, O_CLOEXEC);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    process_free(f->process);
    child_reaper_free(f->reaper);
    loop_free(f->loop);
    buf_done(&f->said);
    close(f->pipe[0]);
    if (f->pipe[1] >= 0)
        close(f->pipe[1]);
    free(f);
    return 0;
}

static void start_in(struct fixture *f, const char *dir, const char *const *argv, const char *const *env)
{
    struct err err = ERR_INIT;
    const struct process_config c = {.loop = f->loop,
                                     .reaper = f->reaper,
                                     .argv = argv,
                                     .env = env,
                                     .dir = dir,
                                     .out = f->pipe[1],
                                     .err = f->pipe[1],
                                     .fn = on_event,
                                     .ctx = f};
    f->process = process_start(&c, &err);
    assert_non_null(f->process);
    close(f->pipe[1]);
    f->pipe[1] = -1;
}

static void start(struct fixture *f, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL}, *const env[] = {"PATH=/usr/bin:/bin", NULL};
    start_in(f, NULL, argv, env);
}

static bool happened(const struct fixture *f, const char *event)
{
    return strstr(f->events, event) != NULL;
}

static void until(struct fixture *f, const char *event)
{
    while (!happened(f, event))
        loop_run_once(f->loop, LONG_MS);
}

// Blocks until that many bytes have arrived, or the end.
static const char *read_said(struct fixture *f, size_t n)
{
    char bytes[4096];
    for (ssize_t got; f->said.len < n && (got = read(f->pipe[0], bytes, sizeof bytes)) > 0;)
        buf_append(&f->said, bytes, (size_t)got);
    return buf_str(&f->said);
}

static void an_exit_code_is_known(void **state)
{
    struct fixture *f = *state;
    start(f, "exit 3");
    until(f, "g");
    assert_string_equal(f->events, "sxg");
    assert_int_equal(f->exit.code, 3);
    assert_int_equal(f->exit.signal, 0);
    assert_string_equal(process_error(f->process), "");
}

static void death_by_a_signal_is_128_and_its_number(void **state)
{
    struct fixture *f = *state;
    start(f, "kill -SEGV $$");
    until(f, "g");
    assert_int_equal(f->exit.code, 128 + SIGSEGV);
    assert_int_equal(f->exit.signal, SIGSEGV);
}

static void its_environment_is_what_it_was_given_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"env", NULL}, *const env[] = {"RANK=3", "PATH=/nowhere:/usr/bin:/bin", NULL};
    setenv("NOT_FOR_CHILDREN", "1", 1);
    start_in(f, NULL, argv, env);
    until(f, "g");
    assert_string_equal(read_said(f, SIZE_MAX), "RANK=3\nPATH=/nowhere:/usr/bin:/bin\n");
}

static void it_leads_a_session_with_clean_signals_and_three_descriptors(void **state)
{
    struct fixture *f = *state;
    int leaked = open("/dev/null", O_RDONLY); // without O_CLOEXEC, on purpose
    char want[64];
    signal(SIGPIPE, SIG_IGN);
    // The shell reads the files itself, because it may block signals while it starts a child.
    start(f,
          "read -r pid name state ppid pgrp sid rest < /proc/$$/stat; echo $pgrp $sid; "
          "while read -r key value; do case $key in SigBlk:|SigIgn:) echo $key $value; esac; done < /proc/$$/status; "
          "ls /proc/$$/fd; read -r x; echo end");
    signal(SIGPIPE, SIG_DFL);
    close(leaked);
    until(f, "g");
    snprintf(want, sizeof want, "%d %d\n", process_pid(f->process), process_pid(f->process));
    const char *said = read_said(f, SIZE_MAX);
    assert_memory_equal(said, want, strlen(want));
    assert_string_equal(said + strlen(want), "SigBlk: 0000000000000000\nSigIgn: 0000000000000000\n0\n1\n2\nend\n");
}

static void it_starts_in_its_directory(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"/bin/pwd", NULL}, *const env[] = {NULL};
    start_in(f, "/usr", argv, env);
    until(f, "g");
    assert_string_equal(read_said(f, SIZE_MAX), "/usr\n");
}

static void assert_refused(struct fixture *f, int code, const char *why)
{
    until(f, "g");
    assert_string_equal(f->events, "xg");
    assert_int_equal(f->exit.code, code);
    if (!strstr(process_error(f->process), why))
        fail_msg("\"%s\" does not say: %s", process_error(f->process), why);
}

static const char *write_file(const char *name, const char *text, mode_t mode)
{
    static char path[256];
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/cadre-%d-%s", dir ? dir : "/tmp", getpid(), name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    fchmod(fd, mode);
    close(fd);
    return path;
}

static void a_command_that_is_not_there_is_named(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"/usr/bin/no-such-program", NULL}, *const env[] = {NULL};
    start_in(f, NULL, argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_FOUND,
                   "cannot start /usr/bin/no-such-program: no such file or directory: is it in the image?");
}

static void a_command_that_is_not_in_path_is_named(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"no-such-program", NULL}, *const env[] = {"PATH=/usr/bin:/bin", NULL};
    start_in(f, NULL, argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_FOUND,
                   "cannot start no-such-program: no such file or directory in PATH: is it in the image?");
}

static void an_image_without_the_worker_host_is_told_what_it_needs(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"cadre-worker", NULL}, *const env[] = {"PATH=/nowhere", NULL};
    start_in(f, NULL, argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_FOUND, "spec.worker.module needs an image that has it");
}

static void a_directory_that_is_not_there_is_named(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"/bin/true", NULL}, *const env[] = {NULL};
    start_in(f, "/no/such/dir", argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_RUNNABLE, "cannot start /bin/true in directory /no/such/dir: No such file");
}

static void a_file_that_is_not_executable_is_named(void **state)
{
    struct fixture *f = *state;
    const char *path = write_file("plain", "#!/bin/sh\n", 0600);
    const char *const argv[] = {path, NULL}, *const env[] = {NULL};
    start_in(f, NULL, argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_RUNNABLE, "Permission denied: is it executable for this user?");
    unlink(path);
}

static void a_script_whose_interpreter_is_missing_says_so(void **state)
{
    struct fixture *f = *state;
    const char *path = write_file("interpreter", "#!/no/such/python\n", 0700);
    const char *const argv[] = {path, NULL}, *const env[] = {NULL};
    start_in(f, NULL, argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_RUNNABLE, "the file is there, but not the interpreter");
    unlink(path);
}

static void a_file_that_is_no_program_says_so(void **state)
{
    struct fixture *f = *state;
    const char *path = write_file("text", "hello\n", 0700);
    const char *const argv[] = {path, NULL}, *const env[] = {NULL};
    start_in(f, NULL, argv, env);
    assert_refused(f, PROCESS_EXIT_NOT_RUNNABLE, "not a program for this machine");
    unlink(path);
}

static void stopping_asks_first(void **state)
{
    struct fixture *f = *state;
    start(f, "trap 'echo asked; exit 5' TERM; echo ready; while :; do :; done");
    read_said(f, 6);
    process_stop(f->process, LONG_MS);
    until(f, "g");
    assert_int_equal(f->exit.code, 5);
    assert_non_null(strstr(read_said(f, SIZE_MAX), "asked\n")); // the shell may say that its sleep was terminated
}

static void who_does_not_listen_is_killed_after_the_grace_time(void **state)
{
    struct fixture *f = *state;
    start(f, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    read_said(f, 6);
    process_stop(f->process, 50);
    until(f, "g");
    assert_int_equal(f->exit.signal, SIGKILL);
}

static void a_second_stop_may_only_shorten_the_grace_time(void **state)
{
    struct fixture *f = *state;
    start(f, "trap '' TERM; echo ready; while :; do sleep 1000; done");
    read_said(f, 6);
    process_stop(f->process, LONG_MS);
    process_stop(f->process, 2 * LONG_MS);
    loop_run_once(f->loop, 1);
    assert_false(happened(f, "x"));
    process_stop(f->process, 0);
    until(f, "g");
    assert_int_equal(f->exit.signal, SIGKILL);
}

static void children_of_one_that_exits_are_killed_with_it(void **state)
{
    struct fixture *f = *state;
    start(f, "(trap '' TERM; sleep 1000) & (sleep 1000) & exit 0");
    until(f, "g");
    assert_int_equal(f->exit.code, 0);
    assert_int_equal(kill(-process_pid(f->process), 0), -1);
    assert_string_equal(read_said(f, SIZE_MAX), ""); // this returns because no process holds the pipe
}

// A shell that runs the program dies of SIGTERM at once. The program may still write its checkpoint.
static void children_of_one_that_is_stopped_have_the_grace_time_too(void **state)
{
    struct fixture *f = *state;
    start(f, "(trap 'sleep 0.1; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.01; done) & "
             "while :; do sleep 1000; done");
    read_said(f, 6);
    process_stop(f->process, LONG_MS);
    until(f, "g");
    assert_string_equal(f->events, "sxg");
    assert_int_equal(f->exit.signal, SIGTERM);
    assert_non_null(strstr(read_said(f, SIZE_MAX), "saved\n"));
}

static void an_orphan_that_left_the_group_is_found_and_reaped(void **state)
{
    struct fixture *f = *state;
    start(f, "WHOSE=ours setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000");
    pid_t orphan = (pid_t)strtol(read_said(f, 2), NULL, 10);
    process_stop(f->process, 0);
    until(f, "g");
    assert_true(orphan > 0);
    assert_int_equal(child_reaper_kill_orphans(f->reaper, "WHOSE=another's"), 0);
    while (child_reaper_kill_orphans(f->reaper, "WHOSE=ours") == 0)
        loop_run_once(f->loop, 10); // the orphan may not have become a child of this process yet
    while (kill(orphan, 0) == 0)
        loop_run_once(f->loop, 10);
    assert_int_equal(errno, ESRCH);
}

static void freeing_a_process_kills_it(void **state)
{
    struct fixture *f = *state;
    start(f, "echo ready; sleep 1000");
    read_said(f, 6);
    process_free(TAKE_PTR(f->process));
    assert_string_equal(read_said(f, SIZE_MAX), "ready\n");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_exit_code_is_known),
        T(death_by_a_signal_is_128_and_its_number),
        T(its_environment_is_what_it_was_given_and_nothing_else),
        T(it_leads_a_session_with_clean_signals_and_three_descriptors),
        T(it_starts_in_its_directory),
        T(a_command_that_is_not_there_is_named),
        T(a_command_that_is_not_in_path_is_named),
        T(an_image_without_the_worker_host_is_told_what_it_needs),
        T(a_directory_that_is_not_there_is_named),
        T(a_file_that_is_not_executable_is_named),
        T(a_script_whose_interpreter_is_missing_says_so),
        T(a_file_that_is_no_program_says_so),
        T(stopping_asks_first),
        T(who_does_not_listen_is_killed_after_the_grace_time),
        T(a_second_stop_may_only_shorten_the_grace_time),
        T(children_of_one_that_exits_are_killed_with_it),
        T(children_of_one_that_is_stopped_have_the_grace_time_too),
        T(an_orphan_that_left_the_group_is_found_and_reaped),
        T(freeing_a_process_kills_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
