// SPDX-License-Identifier: Apache-2.0
// group.kill: a client has the agent end the process of a rank. The end of the process is the answer.
#include "operator/proxy/kill.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define KILL "{\"method\":\"group.kill\"}"

static void kills(struct world *w, uint32_t id, uint32_t rank)
{
    sends(w, (struct call_text){.id = id, .rank = rank, .head = KILL});
}

// Returns the kill that the agent gets, for a process of that attempt.
static struct kill *ordered(struct world *w, uint32_t attempt, uint32_t rank)
{
    struct kill *k = kill_next(&w->f.router);
    assert_non_null(k);
    assert_string_equal(k->group->uid, FIXTURE_UID);
    assert_string_equal(k->group->key, "ml/llama");
    assert_int_equal(k->attempt, attempt);
    assert_int_equal(k->rank, rank);
    return k;
}

static void nothing_ordered(struct world *w)
{
    assert_null(kill_next(&w->f.router));
}

static void the_end_of_the_process_is_the_answer(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD});
    worker_takes(&w->workers[2], "");
    kills(w, 2, 2);
    ordered(w, 1, 2);
    nothing_ordered(w);
    assert_null(wire_next(&w->workers[2].wire)); // the process may hang, so it is not asked
    worker_hang_up(&w->f, &w->workers[2]);       // the connection may have ended for another reason
    hears_nothing(w);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 1, 1, NULL);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 2, 137, NULL);
    hears(w, "1 ERROR rank=2 exit=137 UNAVAILABLE *"); // calls that the rank has not answered fail
    hears(w, "2 RESULT null");
    worker_start(&w->f, &w->workers[2], 2, 2);
    sends(w, (struct call_text){.id = 3, .rank = 2, .head = ADD});
    worker_says(&w->f, &w->workers[2], worker_takes(&w->workers[2], ""), "7");
    hears(w, "3 RESULT 7");
}

// A process that hangs answers no pings, so its connection was closed. A client wants to kill exactly such a process.
static void a_process_that_is_not_connected_can_be_killed(void **state)
{
    struct world *w = *state;
    worker_hang_up(&w->f, &w->workers[3]);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 3, 1, NULL);
    worker_start(&w->f, &w->workers[3], 3, 2);
    worker_hang_up(&w->f, &w->workers[3]);
    kills(w, 1, 3);
    ordered(w, 0, 3);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 3, 1, NULL); // the end of the process before, reported again
    hears_nothing(w);
    router_worker_exited(&w->f.router, FIXTURE_UID, 2, 3, 137, NULL);
    hears(w, "1 RESULT null");
}

static void it_waits_for_nobody(void **state)
{
    struct world *w = *state;
    uint32_t most = w->f.router.config.member_calls = 3;
    for (uint32_t id = 100; id < 100 + most; id++)
        sends(w, (struct call_text){.id = id, .rank = 2, .head = ADD});
    sends(w, (struct call_text){.id = 99, .rank = 2, .head = ADD});
    hears(w, "99 ERROR THROTTLED *");
    w->workers[2].member->peer.out->queue.max_bytes = 0; // the queue is full
    kills(w, 4, 2);
    ordered(w, 1, 2);
    worker_hang_up(&w->f, &w->workers[3]);
    sends_group(w, 1, ADD, "[1]"); // this call waits for rank 3
    kills(w, 2, 1);
    ordered(w, 1, 1);
}

static void a_newer_process_means_that_it_is_gone(void **state)
{
    struct world *w = *state;
    kills(w, 1, 0);
    ordered(w, 1, 0);
    worker_hang_up(&w->f, &w->workers[0]);
    worker_start(&w->f, &w->workers[0], 0, 2);
    hears(w, "1 RESULT null");
    kills(w, 2, 1);
    ordered(w, 1, 1);
    fixture_group(&w->f, WORLD, 3, NULL); // the pod was deleted, so no agent will report an end
    hears(w, "2 RESULT null");
}

// Nobody knows the attempt of the process that hangs. The answer comes when a process ends, or when all attempts of
// that time are over.
static void a_process_that_never_connected_is_waited_for(void **state)
{
    struct world *w = *state;
    fixture_group(&w->f, WORLD, 3, NULL);
    for (uint32_t rank = 1; rank <= 3; rank++) {
        worker_hang_up(&w->f, &w->workers[rank]);
        kills(w, rank, rank);
        ordered(w, 0, rank);
    }
    fixture_group(&w->f, WORLD, 3, NULL);
    hears_nothing(w);
    worker_start(&w->f, &w->workers[2], 2, 3); // this is the process that is about to be killed
    hears_nothing(w);
    router_worker_exited(&w->f.router, FIXTURE_UID, 2, 1, 137, NULL); // an older process, which was not gone yet
    hears(w, "1 RESULT null");
    router_worker_exited(&w->f.router, FIXTURE_UID, 3, 2, 137, NULL);
    hears(w, "2 RESULT null");
    fixture_group(&w->f, WORLD, 4, NULL);
    hears(w, "3 RESULT null");
}

static void what_the_agent_refuses_fails(void **state)
{
    struct world *w = *state;
    struct err err = ERR_INIT;
    kills(w, 1, 0);
    err_set(&err, ERR_UNAVAILABLE, "the agent is not connected");
    kill_refuse(ordered(w, 1, 0), &err); // there is no agent
    hears(w, "1 ERROR UNAVAILABLE the agent is not connected");
    kills(w, 2, 1);
    ordered(w, 1, 1);
    router_kill_refused(&w->f.router, FIXTURE_UID, 2, "of another rank");
    router_kill_refused(&w->f.router, "uid-2", 1, "of another group");
    hears_nothing(w);
    router_kill_refused(&w->f.router, FIXTURE_UID, 1, "no process of rank 1 runs here");
    hears(w, "2 ERROR UNAVAILABLE rank 1 of ml/llama was not killed: no process of rank 1 runs here");
}

// The group is suspended, deleted or failed: its ranks are asked to end, and may hang.
static void a_rank_of_a_group_that_takes_no_calls_is_killed_while_it_is_there(void **state)
{
    struct world *w = *state;
    fixture_group(&w->f, WORLD, 1, "it is suspended");
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD, .args = "[1]"});
    hears(w, "1 ERROR UNAVAILABLE ml/llama takes no calls: it is suspended");
    kills(w, 2, 1);
    ordered(w, 1, 1);
    worker_hang_up(&w->f, &w->workers[1]);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 1, 137, NULL);
    hears(w, "2 RESULT null");
    kills(w, 3, 1);
    nothing_ordered(w);
    hears(w, "3 ERROR UNAVAILABLE ml/llama takes no calls: it is suspended");
}

static void it_is_not_waited_for_without_end(void **state)
{
    struct world *w = *state;
    kills(w, 1, 1);
    ordered(w, 1, 1);
    fixture_pass(&w->f, KILL_WAIT_MS);
    hears_about(w, "1 ERROR TIMEOUT", "not done within 30000 ms: the agent of rank 1 has not reported the end");
    kills(w, 2, 1);
    ordered(w, 1, 1);
    client_cancel(&w->c, 2);
    hears_about(w, "2 ERROR CANCELED", "the process may still end");
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 1, 137, NULL);
    hears_nothing(w);
    kills(w, 3, 2); // the client disconnects, and nobody waits for the end
}

static void what_it_cannot_do_is_said(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, KILL, "");
    hears_about(w, "1 ERROR INVALID", "group.kill: which rank? It ends one process");
    kills(w, 2, WORLD);
    hears_about(w, "2 ERROR INVALID", "ml/llama has no rank 4; its ranks are 0 to 3");
    sends(w, (struct call_text){.id = 3, .rank = 1, .head = "{\"method\":\"group.kill\",\"role\":\"actor\"}"});
    hears_about(w, "3 ERROR INVALID", "the roles of a process live and die together");
    sends(w, (struct call_text){.id = 4, .rank = 1, .head = "{\"method\":\"group.kill\",\"pad\":true}"});
    hears_about(w, "4 ERROR INVALID", "group.kill takes a rank");
    sends(w, (struct call_text){.id = 6, .rank = 1, .head = "{\"method\":\"group.kill\",\"attempt\":9}"});
    hears_about(w, "6 ERROR UNAVAILABLE", "this replica does not know attempt 9 of ml/llama yet");
    fixture_group(&w->f, WORLD, 2, NULL);
    sends(w, (struct call_text){.id = 5, .rank = 1, .head = "{\"method\":\"group.kill\",\"attempt\":1}"});
    hears_about(w, "5 ERROR CONFLICT", "the call is for attempt 1 of ml/llama, which has ended");
    nothing_ordered(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(the_end_of_the_process_is_the_answer),
        PROXY_TEST(a_process_that_is_not_connected_can_be_killed),
        PROXY_TEST(it_waits_for_nobody),
        PROXY_TEST(a_newer_process_means_that_it_is_gone),
        PROXY_TEST(a_process_that_never_connected_is_waited_for),
        PROXY_TEST(what_the_agent_refuses_fails),
        PROXY_TEST(a_rank_of_a_group_that_takes_no_calls_is_killed_while_it_is_there),
        PROXY_TEST(it_is_not_waited_for_without_end),
        PROXY_TEST(what_it_cannot_do_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
