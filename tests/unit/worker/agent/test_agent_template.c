// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/template.h"

#include "common/base/buf.h"
#include "common/base/child.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// test_python_preload.py tests a template that forks, with the real one in Python.

enum { LONG_MS = 600 * 1000 }; // never reached

struct fixture {
    struct loop *loop;
    struct child_reaper *reaper;
    struct rank_output *output;
    struct template *template;
    int null;
    struct oom oom;
    char folder[64];  // of this test
    struct buf heard; // of requests, one line each
    int n_heard;
};

static void make_template(struct fixture *f, int64_t import_ms, int64_t idle_ms)
{
    const struct template_config c = {.loop = f->loop,
                                      .reaper = f->reaper,
                                      .output = f->output,
                                      .oom = &f->oom,
                                      .import_ms = import_ms,
                                      .idle_ms = idle_ms};
    template_free(f->template);
    f->template = template_new(&c);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->reaper = child_reaper_new(f->loop);
    f->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    f->output = rank_output_new(f->loop, f->null, f->null);
    f->heard = BUF_INIT(64 * 1024);
    f->oom.root = f->folder;
    snprintf(f->folder, sizeof f->folder, "/tmp/test_agent_template.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    make_template(f, LONG_MS, LONG_MS);
    *state = f;
    return 0;
}

static void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    assert_int_equal(rmdir(folder), 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    template_free(f->template);
    rank_output_free(f->output);
    child_reaper_free(f->reaper);
    loop_free(f->loop);
    close(f->null);
    remove_folder(f->folder);
    buf_done(&f->heard);
    free(f);
    return 0;
}

static void want(struct fixture *f, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL}, *const env[] = {"PATH=/usr/bin:/bin", NULL};
    template_want(f->template,
                  &(struct template_source){.who = "template", .argv = argv, .env = env, .dir = f->folder});
}

static void on_forked(void *ctx, int pid, int fd, const char *why_not)
{
    struct fixture *f = ctx;
    assert_true(pid == 0 && fd < 0);
    buf_printf(&f->heard, "%s\n", why_not);
    f->n_heard++;
}

static struct fork_request *ask(struct fixture *f)
{
    static const char *const env[] = {"RANK=0", NULL};
    struct err err = ERR_INIT;
    const struct fork_config c = {.env = env, .out = f->null, .err = f->null, .fn = on_forked, .ctx = f};
    struct fork_request *b = template_fork(f->template, &c, &err);
    assert_non_null(b);
    return b;
}

static void until(struct fixture *f, int n_heard)
{
    while (f->n_heard < n_heard)
        loop_run_once(f->loop, LONG_MS);
}

// The process of the template: the last one that was started.
static pid_t last;

pid_t __real_child_fork(void);
pid_t __wrap_child_fork(void);
pid_t __wrap_child_fork(void)
{
    pid_t pid = __real_child_fork();
    last = pid > 0 ? pid : last;
    return pid;
}

// Also while only its own children run.
static bool runs(pid_t pid)
{
    return kill(pid, 0) == 0 || kill(-pid, 0) == 0;
}

static void until_it_ends(struct fixture *f)
{
    while (runs(last))
        loop_run_once(f->loop, LONG_MS);
}

static void all_ranks_hear_why_it_refuses(void **state)
{
    struct fixture *f = *state;
    want(f, "printf 'Nthreads run' >&0");
    ask(f);
    ask(f);
    until(f, 2);
    assert_string_equal(buf_str(&f->heard), "threads run\nthreads run\n");
}

static void one_that_fails_by_itself_is_not_tried_again(void **state)
{
    struct fixture *f = *state;
    const char *script = "[ -e ran ] && printf 'Nit runs twice' >&0; : >ran; exit 3";
    want(f, script);
    ask(f);
    until(f, 1);
    want(f, script);
    ask(f);
    until(f, 2);
    const char *line = "it exited with code 3; its output says why\n";
    assert_non_null(strstr(buf_str(&f->heard), line));
    assert_int_equal(f->heard.len, 2 * strlen(line));
}

static void another_source_is_another_template(void **state)
{
    struct fixture *f = *state;
    want(f, "printf 'Nfirst' >&0");
    ask(f);
    until(f, 1);
    want(f, "printf 'Nsecond' >&0");
    ask(f);
    until(f, 2);
    assert_string_equal(buf_str(&f->heard), "first\nsecond\n");
}

static void the_same_source_keeps_the_process(void **state)
{
    struct fixture *f = *state;
    want(f, "cat <&0");
    pid_t first = last;
    assert_true(runs(first));
    want(f, "cat <&0");
    assert_int_equal(last, first);
    assert_true(runs(first));
    want(f, "cat <&0; exit");
    assert_int_not_equal(last, first);
}

static void one_that_was_killed_is_started_again(void **state)
{
    struct fixture *f = *state;
    want(f, "cat <&0");
    pid_t first = last;
    ask(f);
    kill(first, SIGKILL);
    until(f, 1);
    assert_non_null(strstr(buf_str(&f->heard), "it was ended by signal 9"));
    want(f, "cat <&0");
    assert_int_not_equal(last, first);
    assert_true(runs(last));
}

static void one_that_dies_while_it_forks_fails_that_rank(void **state)
{
    struct fixture *f = *state;
    want(f, "printf R >&0; kill -KILL $$");
    ask(f);
    ask(f);
    until(f, 2);
    assert_null(strstr(buf_str(&f->heard), "threads"));
}

static void ranks_that_wait_are_asked_for_in_one_packet(void **state)
{
    struct fixture *f = *state;
    want(f, "printf R >&0; dd bs=64 count=1 <&0 >asked 2>/dev/null; exit 4");
    ask(f);
    ask(f);
    ask(f);
    until(f, 3);
    until_it_ends(f);
    char path[128], words[16];
    snprintf(path, sizeof path, "%s/asked", f->folder);
    FILE *asked = fopen(path, "re");
    assert_non_null(asked);
    assert_non_null(fgets(words, sizeof words, asked));
    fclose(asked);
    assert_string_equal(words, "FFF");
    assert_string_equal(buf_str(&f->heard),
                        "it ended while it forked\nit ended while it forked\nit ended while it forked\n");
}

// On a busy machine, the shell may not reach its first command in time.
static void imports_that_hang_say_where_and_end(void **state)
{
    struct fixture *f = *state;
    char path[128];
    int tries = 0;
    snprintf(path, sizeof path, "%s/asked", f->folder);
    for (int import_ms = 100; access(path, F_OK) != 0 && import_ms < LONG_MS; import_ms *= 4) {
        make_template(f, import_ms, LONG_MS);
        want(f, "trap ': >asked; exit' 63; while :; do sleep 0.02; done");
        ask(f);
        until(f, ++tries);
        until_it_ends(f);
    }
    assert_int_equal(access(path, F_OK), 0);
    assert_non_null(strstr(buf_str(&f->heard), "its imports take more than 0 s; its output says where they are"));
}

static void one_that_rests_ends_and_is_started_again(void **state)
{
    struct fixture *f = *state;
    make_template(f, LONG_MS, 1);
    want(f, "cat <&0");
    template_rest(f->template);
    until_it_ends(f);
    want(f, "cat <&0");
    assert_true(runs(last));
}

static void a_rank_that_is_canceled_hears_nothing(void **state)
{
    struct fixture *f = *state;
    want(f, "printf 'Nno' >&0");
    struct fork_request *b = ask(f);
    ask(f);
    fork_request_cancel(b);
    until(f, 1);
    assert_string_equal(buf_str(&f->heard), "no\n");
}

static void a_program_that_is_not_there_is_said(void **state)
{
    struct fixture *f = *state;
    const char *const argv[] = {"/nowhere/python3", NULL}, *const env[] = {NULL};
    template_want(f->template, &(struct template_source){.who = "template", .argv = argv, .env = env});
    ask(f);
    until(f, 1);
    assert_non_null(strstr(buf_str(&f->heard), "cannot start /nowhere/python3: no such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_ranks_hear_why_it_refuses, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_fails_by_itself_is_not_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(another_source_is_another_template, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_source_keeps_the_process, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_was_killed_is_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_dies_while_it_forks_fails_that_rank, setup, teardown),
        cmocka_unit_test_setup_teardown(ranks_that_wait_are_asked_for_in_one_packet, setup, teardown),
        cmocka_unit_test_setup_teardown(imports_that_hang_say_where_and_end, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_rests_ends_and_is_started_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_rank_that_is_canceled_hears_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_not_there_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
