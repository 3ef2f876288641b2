// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/template.h"

#include "common/base/buf.h"
#include "common/base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// What a template does that has forked is tested with the one that there is, in Python (test_python_preload.py).

enum { LONG_MS = 60 * 1000 }; // never waited for

struct fixture {
    struct loop *loop;
    struct reaper *reaper;
    struct output *output;
    struct template *template;
    int null;
    struct buf heard; // of births, a line each
    int n_heard;
};

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->loop = loop_new();
    f->reaper = reaper_new(f->loop);
    f->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    f->output = output_new(f->loop, f->null, f->null);
    f->template = template_new(&(struct template_config){f->loop, f->reaper, f->output});
    f->heard = BUF_INIT(64 * 1024);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    template_free(f->template);
    output_free(f->output);
    reaper_free(f->reaper);
    loop_free(f->loop);
    close(f->null);
    buf_done(&f->heard);
    free(f);
    return 0;
}

static void want(struct fixture *f, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL}, *const env[] = {"PATH=/usr/bin:/bin", NULL};
    template_want(f->template, &(struct template_source){.who = "template", .argv = argv, .env = env});
}

static void on_birth(void *ctx, int pid, int fd, const char *why_not)
{
    struct fixture *f = ctx;
    assert_true(pid == 0 && fd < 0);
    buf_printf(&f->heard, "%s\n", why_not);
    f->n_heard++;
}

static struct birth *ask(struct fixture *f)
{
    static const char *const env[] = {"RANK=0", NULL};
    struct err err = ERR_INIT;
    const struct birth_config c = {.env = env, .out = f->null, .err = f->null, .fn = on_birth, .ctx = f};
    struct birth *b = template_fork(f->template, &c, &err);
    assert_non_null(b);
    return b;
}

static void until(struct fixture *f, int n_heard)
{
    while (f->n_heard < n_heard)
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
    char folder[] = "/tmp/test_agent_template.XXXXXX", script[256];
    assert_non_null(mkdtemp(folder));
    snprintf(script, sizeof script, "mkdir %s/ran || printf 'Nit runs twice' >&0; exit 3", folder);
    want(f, script);
    ask(f);
    until(f, 1);
    want(f, script);
    ask(f);
    until(f, 2);
    const char *line = "it exited with code 3; its output says why\n";
    assert_non_null(strstr(buf_str(&f->heard), line));
    assert_int_equal(f->heard.len, 2 * strlen(line));
    snprintf(script, sizeof script, "%s/ran", folder);
    rmdir(script);
    rmdir(folder);
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
    int pid = template_pid(f->template);
    assert_int_not_equal(pid, 0);
    want(f, "cat <&0");
    assert_int_equal(template_pid(f->template), pid);
    want(f, "cat <&0; exit");
    assert_int_not_equal(template_pid(f->template), pid);
}

static void one_that_was_killed_is_started_again(void **state)
{
    struct fixture *f = *state;
    want(f, "cat <&0");
    int pid = template_pid(f->template);
    ask(f);
    kill(pid, SIGKILL);
    until(f, 1);
    assert_non_null(strstr(buf_str(&f->heard), "it was ended by signal 9"));
    want(f, "cat <&0");
    assert_int_not_equal(template_pid(f->template), 0);
    assert_int_not_equal(template_pid(f->template), pid);
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

static void a_rank_that_is_canceled_hears_nothing(void **state)
{
    struct fixture *f = *state;
    want(f, "printf 'Nno' >&0");
    struct birth *b = ask(f);
    ask(f);
    birth_cancel(b);
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
        cmocka_unit_test_setup_teardown(a_rank_that_is_canceled_hears_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_not_there_is_said, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
