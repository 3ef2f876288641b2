// SPDX-License-Identifier: Apache-2.0
// group.kill: a rank's process ends on the wish of a controller, and its end is the answer.
#include "tests/unit/proxy_world.h"

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

static void the_end_of_the_process_is_the_answer(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD});
    worker_takes(&w->workers[2], "");
    kills(w, 2, 2);
    worker_takes(&w->workers[2], "");
    hears_nothing(w);
    worker_hang_up(&w->f, &w->workers[2]);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 2, 137);
    hears(w, "1 ERROR rank=2 exit=137 UNAVAILABLE *"); // what it had not answered fails
    hears(w, "2 RESULT null");
    worker_start(&w->f, &w->workers[2], 2, 2);
    sends(w, (struct call_text){.id = 3, .rank = 2, .head = ADD});
    worker_says(&w->f, &w->workers[2], worker_takes(&w->workers[2], ""), "7");
    hears(w, "3 RESULT 7");
}

static void without_an_agent_the_lost_connection_is_enough(void **state)
{
    struct world *w = *state;
    kills(w, 1, 0);
    worker_hang_up(&w->f, &w->workers[0]);
    fixture_pass(&w->f, 200);
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
    for (uint32_t i = 0; i < most; i++)
        worker_takes(&w->workers[2], "");
    kills(w, 4, 2); // however many calls it has not answered
    worker_takes(&w->workers[2], "");
    worker_hang_up(&w->f, &w->workers[3]);
    sends_group(w, 1, ADD, "[1]"); // waits for rank 3
    kills(w, 2, 1);
    worker_takes(&w->workers[1], "");
    kills(w, 3, 3);
    hears_about(w, "3 ERROR UNAVAILABLE", "3 of 4 ranks are connected, missing: 3");
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
    fixture_group(&w->f, WORLD, 2, NULL);
    sends(w, (struct call_text){.id = 5, .rank = 1, .head = "{\"method\":\"group.kill\",\"attempt\":1}"});
    hears_about(w, "5 ERROR CONFLICT", "the call is for attempt 1 of ml/llama, which is over");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(the_end_of_the_process_is_the_answer),
        PROXY_TEST(without_an_agent_the_lost_connection_is_enough),
        PROXY_TEST(it_waits_for_nobody),
        PROXY_TEST(what_it_cannot_do_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
