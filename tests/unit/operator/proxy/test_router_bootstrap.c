// SPDX-License-Identifier: Apache-2.0
// Ranks that wait for the archive of their code are in the bootstrap group, and programs bring the archive there.
#include "operator/proxy/kill.h"
#include "operator/proxy/output.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define SHA256 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define WAITS                                                                       \
    "{\"awaits\":\"" SHA256 "\","                                                   \
    "\"code\":true,\"methods\":[{\"name\":\"receive\",\"dispatch\":\"ONE_TO_ALL\"," \
    "\"execute\":\"RANK_ZERO\"}]}"
#define RECEIVE "{\"method\":\"receive\",\"group\":\"llama.code\"}"

static void wait_at(struct world *w, uint32_t rank, uint32_t attempt)
{
    struct err err = ERR_INIT;
    assert_int_equal(worker_dial_as(&w->f, &w->workers[rank], rank, attempt, WAITS, &err), 0);
}

static void bring(struct world *w, uint32_t id, uint32_t rank)
{
    sends(w, (struct call_text){.id = id, .rank = rank, .head = RECEIVE, .args = "[1]"});
}

static void a_rank_that_waits_is_called_in_the_bootstrap_group_and_not_in_its_group(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD});
    hears_nothing(w);
    bring(w, 3, 1);
    worker_says(&w->f, &w->workers[1], worker_takes(&w->workers[1], "[1]"), "20");
    hears(w, "3 RESULT 20");
    worker_hang_up(&w->f, &w->workers[1]);
    worker_start(&w->f, &w->workers[1], 1, 1);
    worker_says(&w->f, &w->workers[1], worker_takes(&w->workers[1], ""), "5");
    hears(w, "1 RESULT 5");
}

static void info_says_who_waits_for_what(void **state)
{
    struct world *w = *state;
    struct buf info = BUF_INIT(1 << 16);
    const struct group *g = router_group(&w->f.router, FIXTURE_UID);
    wait_at(w, 1, 1);
    worker_start(&w->f, &w->workers[0], 0, 1);
    group_info(g, 0, &info);
    assert_non_null(strstr(buf_str(&info), "{\"rank\":1,\"connected\":false,\"awaits\":\"" SHA256 "\",\"attempt\":1,"
                                           "\"pod\":\"llama-1-0\",\"node\":\"n1\"}"));
    assert_non_null(strstr(buf_str(&info),
                           "\"message\":\"1 of 4 ranks wait for their code, which another pod of the namespace "
                           "gives, or the program that made the group while it is connected\""));
    assert_non_null(strstr(buf_str(&info), "\"ready\":false"));
    buf_done(&info);
    sends(w, (struct call_text){
                 .id = 1, .rank = RECORD_GROUP, .head = "{\"method\":\"add\",\"whenNotReady\":\"Refuse\"}"});
    hears_about(w, "1 ERROR", "missing: 1, 2, 3; 1 of them wait for their code");
}

static void the_death_of_a_rank_that_waits_ends_the_calls_of_the_bootstrap_group(void **state)
{
    struct world *w = *state;
    wait_at(w, 2, 1);
    bring(w, 1, 2);
    worker_takes(&w->workers[2], "[1]");
    worker_hang_up(&w->f, &w->workers[2]);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 2, 65, "one\nCodeMissing: it did not come\n");
    hears(w,
          "1 ERROR rank=2 exit=65 UNAVAILABLE rank 2 of ml/llama.code (pod llama-2-0 on node n2) exited with code 65 "
          "while receive() was pending; it may have run; its last line: CodeMissing: it did not come");
}

static void a_rank_has_one_place(void **state)
{
    struct world *w = *state;
    struct worker again;
    struct err err = ERR_INIT;
    wait_at(w, 1, 1);
    worker_start(&w->f, &again, 1, 1); // the connection to the bootstrap group is half open
    assert_int_equal(w->workers[1].member->peer.close_code, ERR_CONFLICT);
    worker_hang_up(&w->f, &w->workers[1]);
    wait_at(w, 1, 2); // another process, without its code
    assert_int_equal(again.member->peer.close_code, ERR_CONFLICT);
    worker_hang_up(&w->f, &again);
    assert_int_equal(worker_dial(&w->f, &again, 1, 1, &err), ERR_CONFLICT);
}

static void restarts_and_deletions_empty_the_bootstrap_group(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    fixture_group(&w->f, WORLD, 2, NULL);
    assert_int_equal(w->workers[1].member->peer.close_code, ERR_CONFLICT);
    worker_hang_up(&w->f, &w->workers[1]);
    wait_at(w, 1, 2);
    fixture_group(&w->f, 2, 2, NULL); // another number of ranks
    assert_int_equal(w->workers[1].member->peer.close_code, ERR_CONFLICT);
    worker_hang_up(&w->f, &w->workers[1]);
    wait_at(w, 1, 2);
    bring(w, 1, 1);
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_turn(&w->f.router);
    hears(w, "1 ERROR GONE ml/llama.code was deleted while receive() was pending");
    assert_int_equal(w->workers[1].member->peer.close_code, ERR_GONE);
    bring(w, 2, 1);
    hears(w, "2 ERROR NOT_FOUND *");
}

static void a_group_takes_calls_of_its_bootstrap_group_as_its_own(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    fixture_group(&w->f, WORLD, 1, "it failed");
    bring(w, 1, 1);
    hears(w, "1 ERROR UNAVAILABLE ml/llama.code takes no calls: it failed");
}

// Kills: the agent knows the group only.

static void kill_at(struct world *w, uint32_t id, const char *group, uint32_t attempt)
{
    char head[64];
    snprintf(head, sizeof head, "{\"method\":\"group.kill\",\"group\":\"%s\"}", group);
    sends(w, (struct call_text){.id = id, .rank = 1, .head = head});
    const struct kill *k = kill_next(&w->f.router);
    assert_non_null(k);
    assert_ptr_equal(k->group, router_group(&w->f.router, FIXTURE_UID));
    assert_int_equal(k->attempt, attempt);
}

static void a_rank_that_waits_is_killed_by_either_name(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    kill_at(w, 1, "llama.code", 1);
    kill_at(w, 2, "llama", 1);
    worker_hang_up(&w->f, &w->workers[1]);
    hears_nothing(w);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 1, 137, NULL);
    hears(w, "1 RESULT null");
    hears(w, "2 RESULT null");
    wait_at(w, 1, 2);
    kill_at(w, 3, "llama.code", 2);
    router_kill_refused(&w->f.router, FIXTURE_UID, 1, "no process of rank 1 runs here");
    hears(w, "3 ERROR UNAVAILABLE rank 1 of ml/llama was not killed: no process of rank 1 runs here");
}

static void a_newer_process_that_waits_means_that_the_killed_one_is_gone(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    kill_at(w, 1, "llama.code", 1);
    worker_hang_up(&w->f, &w->workers[1]);
    wait_at(w, 1, 2);
    hears(w, "1 RESULT null");
    kill_at(w, 2, "llama.code", 2);
    fixture_group(&w->f, WORLD, 3, NULL);
    hears(w, "2 RESULT null");
}

static void the_deletion_of_the_group_ends_kills_of_its_bootstrap_group(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    kill_at(w, 1, "llama.code", 1);
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_turn(&w->f.router);
    hears(w, "1 ERROR GONE ml/llama was deleted while group.kill() was pending");
    fixture_pass(&w->f, KILL_WAIT_MS);
    hears_nothing(w);
}

// Output: a client listens to the group, whatever name it says.

static void listens_to(struct world *w, uint32_t id, const char *head, const char *args)
{
    char want[32];
    snprintf(want, sizeof want, "%u RESULT null", id);
    sends_group(w, id, head, args);
    hears(w, want);
}

#define LISTEN "{\"method\":\"group.output\"}"
#define LISTEN_CODE "{\"method\":\"group.output\",\"group\":\"llama.code\"}"

static void the_output_of_the_bootstrap_group_is_the_output_of_the_group(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    listens_to(w, 1, LISTEN, NULL);
    assert_ptr_equal(output_changed(&w->f.router), router_group(&w->f.router, FIXTURE_UID));
    listens_to(w, 2, LISTEN_CODE, NULL);
    assert_null(output_changed(&w->f.router)); // the agents send its lines already
    output_line(&w->f.router, FIXTURE_UID, 1, "waits", 5);
    fixture_pass(&w->f, OUTPUT_FOLD_MS);
    hears(w, "0 OUTPUT {\"group\":\"ml/llama\",\"lines\":[{\"ranks\":\"1\",\"text\":\"waits\"}]}");
    hears_nothing(w);
    listens_to(w, 3, LISTEN_CODE, "{\"listen\":false}");
    assert_ptr_equal(output_changed(&w->f.router), router_group(&w->f.router, FIXTURE_UID));
    assert_null(router_group(&w->f.router, FIXTURE_UID)->output);
}

static void the_deletion_of_the_group_ends_the_output_of_its_bootstrap_group(void **state)
{
    struct world *w = *state;
    wait_at(w, 1, 1);
    listens_to(w, 1, LISTEN_CODE, NULL);
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_turn(&w->f.router);
    assert_null(output_changed(&w->f.router));
    client_close(&w->c); // it listens to nothing any more
    client_open(&w->f, &w->c, "llama.code");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(a_rank_that_waits_is_called_in_the_bootstrap_group_and_not_in_its_group),
        PROXY_TEST_EMPTY(info_says_who_waits_for_what),
        PROXY_TEST_EMPTY(the_death_of_a_rank_that_waits_ends_the_calls_of_the_bootstrap_group),
        PROXY_TEST_EMPTY(a_rank_has_one_place),
        PROXY_TEST_EMPTY(restarts_and_deletions_empty_the_bootstrap_group),
        PROXY_TEST_EMPTY(a_group_takes_calls_of_its_bootstrap_group_as_its_own),
        PROXY_TEST_EMPTY(a_rank_that_waits_is_killed_by_either_name),
        PROXY_TEST_EMPTY(a_newer_process_that_waits_means_that_the_killed_one_is_gone),
        PROXY_TEST_EMPTY(the_deletion_of_the_group_ends_kills_of_its_bootstrap_group),
        PROXY_TEST_EMPTY(the_output_of_the_bootstrap_group_is_the_output_of_the_group),
        PROXY_TEST_EMPTY(the_deletion_of_the_group_ends_the_output_of_its_bootstrap_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
