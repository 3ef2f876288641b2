// SPDX-License-Identifier: Apache-2.0
#include "worker/agent/oom.h"

#include "common/base/mem.h"
#include "tests/unit/support/patience.h"
#include "worker/agent/pod_rank.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/cadre-oom-XXXXXX";

static int setup(void **state)
{
    (void)state;
    return mkdtemp(root) ? 0 : -1;
}

static void in_file(const char *name, const char *text)
{
    _cleanup_(free_p) char *path = xasprintf("%s/%s", root, name);
    if (!text) {
        unlink(path);
        return;
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static int teardown(void **state)
{
    (void)state;
    in_file("memory/memory.oom_control", NULL);
    in_file("memory.events", NULL);
    _cleanup_(free_p) char *memory = xasprintf("%s/memory", root);
    rmdir(memory);
    return rmdir(root);
}

static void both_versions_of_cgroups_tell(void **state)
{
    (void)state;
    assert_int_equal(oom_kills(root), -1);
    _cleanup_(free_p) char *memory = xasprintf("%s/memory", root);
    assert_int_equal(mkdir(memory, 0700), 0);
    in_file("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    assert_int_equal(oom_kills(root), 2);
    in_file("memory.events", "low 0\nhigh 0\nmax 31\noom 4\noom_kill 3\noom_group_kill 0\n");
    assert_int_equal(oom_kills(root), 3);
    in_file("memory.events", "oom_kill many\n");
    assert_int_equal(oom_kills(root), 2);
}

// Ranks whose programs do what the kernel does: they count a kill, and die.
struct ranks {
    struct loop *loop;
    struct child_reaper *reaper;
    struct rank_output *output;
    struct oom oom;
    struct pod_rank *at[2];
    int null, n_gone;
};

static void on_happened(void *ctx, struct pod_rank *p, enum process_event event, const struct process_exit *exit)
{
    struct ranks *r = ctx;
    (void)p, (void)exit;
    r->n_gone += event == PROCESS_GONE;
}

static int setup_ranks(void **state)
{
    struct ranks *r = xcalloc(1, sizeof *r);
    r->loop = loop_new();
    r->reaper = child_reaper_new(r->loop);
    r->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    r->output = rank_output_new(r->loop, r->null, r->null);
    r->oom.root = root;
    for (int i = 0; i < 2; i++) {
        const struct pod_rank_config c = {.loop = r->loop,
                                          .reaper = r->reaper,
                                          .output = r->output,
                                          .oom = &r->oom,
                                          .rank = i,
                                          .happened = on_happened,
                                          .ctx = r};
        r->at[i] = pod_rank_new(&c);
    }
    in_file("memory.events", "oom_kill 0\n");
    *state = r;
    return 0;
}

static int teardown_ranks(void **state)
{
    struct ranks *r = *state;
    for (int i = 0; i < 2; i++)
        pod_rank_free(r->at[i]);
    rank_output_free(r->output);
    child_reaper_free(r->reaper);
    loop_free(r->loop);
    close(r->null);
    free(r);
    return 0;
}

static void start(const struct ranks *r, int rank, const char *script)
{
    const char *const argv[] = {"sh", "-c", script, NULL}, *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const struct pod_rank_run run = {.argv = argv, .env = env, .dir = root};
    pod_rank_start(r->at[rank], "rank", &run);
}

static void until_gone(struct ranks *r, int n)
{
    TURN_UNTIL(loop_run_once(r->loop, 100), r->n_gone == n, "");
    r->n_gone = 0;
}

static bool died_of_memory(const struct ranks *r, int rank)
{
    struct pod_rank_news news;
    pod_rank_news(r->at[rank], &news);
    assert_string_equal(news.error, "");
    return news.oom;
}

static void of_two_ranks_that_are_killed_at_once_both_died_of_memory(void **state)
{
    struct ranks *r = *state;
    start(r, 0, "echo oom_kill 2 > memory.events; kill -KILL $$");
    start(r, 1, "until grep -q 2 memory.events; do sleep 0.01; done; kill -KILL $$");
    until_gone(r, 2);
    assert_true(died_of_memory(r, 0));
    assert_true(died_of_memory(r, 1));
}

static void a_rank_that_others_kill_after_a_child_of_another_rank_did_not_die_of_memory(void **state)
{
    struct ranks *r = *state;
    start(r, 1, "exec sleep 1000");
    start(r, 0, "echo oom_kill 1 > memory.events; exit 1");
    until_gone(r, 1);
    pod_rank_stop(r->at[1], 0);
    until_gone(r, 1);
    assert_false(died_of_memory(r, 0));
    assert_false(died_of_memory(r, 1)); // the agent has killed it
    start(r, 1, "kill -KILL $$");
    until_gone(r, 1);
    assert_false(died_of_memory(r, 1)); // that kill was before its start
    start(r, 1, "echo oom_kill 2 > memory.events; kill -KILL $$");
    until_gone(r, 1);
    assert_true(died_of_memory(r, 1));
}

static void a_rank_died_of_memory_even_if_an_older_one_told_of_the_kill_of_its_child(void **state)
{
    struct ranks *r = *state;
    start(r, 0, "until grep -q 1 memory.events; do sleep 0.01; done; kill -KILL $$");
    in_file("memory.events", "oom_kill 1\n"); // a child of rank 0
    start(r, 1, "until grep -q 2 memory.events; do sleep 0.01; done; kill -KILL $$");
    until_gone(r, 1);
    assert_true(died_of_memory(r, 0)); // nobody can know better
    in_file("memory.events", "oom_kill 2\n");
    until_gone(r, 1);
    assert_true(died_of_memory(r, 1));
}

static void a_kill_before_their_start_is_not_told_of_by_any_of_two_ranks(void **state)
{
    struct ranks *r = *state;
    in_file("memory.events", "oom_kill 1\n");
    start(r, 1, "until [ -e end ]; do sleep 0.01; done; rm end; kill -KILL $$");
    start(r, 0, "echo oom_kill 2 > memory.events; kill -KILL $$");
    until_gone(r, 1);
    assert_true(died_of_memory(r, 0));
    in_file("end", "");
    until_gone(r, 1);
    assert_false(died_of_memory(r, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_of_cgroups_tell),
        cmocka_unit_test_setup_teardown(of_two_ranks_that_are_killed_at_once_both_died_of_memory, setup_ranks,
                                        teardown_ranks),
        cmocka_unit_test_setup_teardown(a_rank_that_others_kill_after_a_child_of_another_rank_did_not_die_of_memory,
                                        setup_ranks, teardown_ranks),
        cmocka_unit_test_setup_teardown(a_rank_died_of_memory_even_if_an_older_one_told_of_the_kill_of_its_child,
                                        setup_ranks, teardown_ranks),
        cmocka_unit_test_setup_teardown(a_kill_before_their_start_is_not_told_of_by_any_of_two_ranks, setup_ranks,
                                        teardown_ranks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
