// SPDX-License-Identifier: Apache-2.0
// Tasks: calls to any rank. Each goes to a rank with a free slot, and further ones wait.
#include "tests/unit/operator/proxy/proxy_world.h"

#include "common/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO                                                                                                          \
    "{\"methods\":[{\"name\":\"add\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"                                \
    "{\"name\":\"task\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ANY\"},"                                             \
    "{\"name\":\"ask\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ANY\",\"concurrency\":{\"group\":\"io\",\"limit\":3}" \
    "},"                                                                                                               \
    "{\"name\":\"tell\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ANY\",\"concurrency\":{\"group\":\"io\",\"limit\":"  \
    "3}}]}"

static void dial(struct world *w, uint32_t rank, uint32_t attempt)
{
    struct err err = ERR_INIT;
    assert_int_equal(worker_dial_as(&w->f, &w->workers[rank], rank, attempt, HELLO, &err), 0);
}

static int setup(void **state)
{
    world_setup_empty(state);
    for (uint32_t i = 0; i < WORLD; i++)
        dial(*state, i, 1);
    return 0;
}

static void starts(struct world *w, uint32_t id, const char *method)
{
    char head[128], args[16];
    snprintf(head, sizeof head, "{\"method\":\"%s\"}", method);
    snprintf(args, sizeof args, "[%u]", id);
    sends_group(w, id, head, args);
}

// The rank must have got exactly one call since. Returns its id at the rank, and its argument. 0: no call.
static uint32_t takes(struct world *w, uint32_t rank, uint32_t *ret_arg)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    uint32_t id = 0;
    *ret_arg = 0;
    if (r) {
        id = r->h.call;
        const char *args = strrchr(r->body + 4, '['); // the head may contain lists
        assert_non_null(args);
        *ret_arg = (uint32_t)strtoul(args + 1, NULL, 10);
        free(r);
    }
    return id;
}

// Row S0-2: ten tasks on four slots run in three waves.
static void ten_tasks_on_four_slots_are_three_waves(void **state)
{
    struct world *w = *state;
    uint32_t waves = 0, done = 0, args[WORLD], ids[WORLD];
    for (uint32_t i = 1; i <= 10; i++)
        starts(w, i, "task");
    for (; done < 10; waves++) {
        for (uint32_t i = 0; i < WORLD; i++) {
            uint32_t more;
            ids[i] = takes(w, i, &args[i]);
            assert_int_equal(takes(w, i, &more), 0); // one at a time
        }
        for (uint32_t i = 0; i < WORLD; i++) {
            char result[16], want[32];
            if (!ids[i])
                continue;
            snprintf(result, sizeof result, "%u", args[i] * args[i]);
            snprintf(want, sizeof want, "%u RESULT %s", args[i], result);
            worker_says(&w->f, &w->workers[i], ids[i], result);
            hears(w, want);
            done++;
        }
    }
    assert_int_equal(waves, 3);
    hears_nothing(w);
}

static void who_is_done_first_gets_the_next_one(void **state)
{
    struct world *w = *state;
    uint32_t id, arg;
    for (uint32_t i = 1; i <= 7; i++)
        starts(w, i, "task");
    for (uint32_t i = 0; i < WORLD; i++)
        if (i != 2)
            takes(w, i, &arg);
    id = takes(w, 2, &arg);
    for (uint32_t want = 5; want <= 7; want++) { // in the order in which they were sent
        worker_says(&w->f, &w->workers[2], id, "0");
        id = takes(w, 2, &arg);
        assert_int_equal(arg, want);
    }
}

static void a_concurrency_group_has_as_many_slots_as_its_limit(void **state)
{
    struct world *w = *state;
    uint32_t arg, n = 0, first = 0;
    for (uint32_t i = 1; i <= 20; i++)
        starts(w, i, i % 2 ? "ask" : "tell"); // both are of the group
    for (uint32_t i = 0; i < WORLD; i++)
        for (uint32_t id; (id = takes(w, i, &arg)) != 0; n++)
            first = i == 0 && !first ? id : first;
    assert_int_equal(n, 12);
    starts(w, 30, "task"); // has slots of its own
    for (uint32_t i = 0; i < WORLD; i++)
        n += takes(w, i, &arg) != 0;
    assert_int_equal(n, 13);
    worker_says(&w->f, &w->workers[0], first, "0");
    assert_int_not_equal(takes(w, 0, &arg), 0);
    assert_int_equal(arg, 13);
}

static void a_rank_that_runs_another_call_gets_none(void **state)
{
    struct world *w = *state;
    uint32_t arg;
    for (uint32_t i = 0; i < 3; i++)
        sends(w, (struct call_text){.id = 100 + i, .rank = i, .head = ADD, .args = "[0]"});
    for (uint32_t i = 0; i < 3; i++)
        takes(w, i, &arg);
    starts(w, 1, "task");
    starts(w, 2, "task");
    uint32_t id = takes(w, 3, &arg);
    assert_int_equal(arg, 1);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(takes(w, i, &arg), 0);
    worker_says(&w->f, &w->workers[3], id, "0");
    takes(w, 3, &arg);
    assert_int_equal(arg, 2);
}

static void tasks_hold_up_no_other_calls(void **state)
{
    struct world *w = *state;
    uint32_t arg;
    for (uint32_t i = 1; i <= 5; i++)
        starts(w, i, "task");
    sends_group(w, 6, ADD, "[6]"); // all ranks get it now, even though a task waits
    for (uint32_t i = 0; i < WORLD; i++) {
        takes(w, i, &arg);
        takes(w, i, &arg);
        assert_int_equal(arg, 6);
    }
}

static void what_waits_can_be_canceled_and_has_a_deadline(void **state)
{
    struct world *w = *state;
    uint32_t arg, id;
    for (uint32_t i = 1; i <= 5; i++)
        starts(w, i, "task");
    sends_group(w, 6, "{\"method\":\"task\",\"timeoutMs\":50}", "[6]");
    starts(w, 7, "task");
    assert_int_equal(client_cancel(&w->c, 5), 0);
    hears(w, "5 ERROR CANCELED task() of ml/llama was canceled by its client before it was sent to a rank");
    fixture_pass(&w->f, 50);
    hears_about(w, "6 ERROR TIMEOUT", "no slot was free: all 4 of the 4 ranks that are connected are busy");
    id = takes(w, 0, &arg);
    worker_says(&w->f, &w->workers[0], id, "0");
    takes(w, 0, &arg);
    assert_int_equal(arg, 7);
}

// A rank that hangs must not keep a queue for ever. A task that has got a slot may take any time.
static void what_waits_without_a_deadline_has_one_all_the_same(void **state)
{
    struct world *w = *state;
    uint32_t arg;
    for (uint32_t i = 1; i <= WORLD + 1; i++)
        starts(w, i, "task");
    fixture_pass(&w->f, w->f.router.config.ready_wait_ms); // this limit is for groups
    hears_nothing(w);
    fixture_pass(&w->f, w->f.router.config.task_wait_ms - w->f.router.config.ready_wait_ms);
    hears_about(w, "5 ERROR TIMEOUT", "not done within 3600000 ms: no slot was free: all 4 of the 4 ranks");
    hears_nothing(w);
    starts(w, 6, "task");
    uint32_t id = takes(w, 2, &arg);
    worker_says(&w->f, &w->workers[2], id, "7"); // its slot goes to the next task, whose deadline has passed by then
    hears(w, "3 RESULT 7");
    takes(w, 2, &arg);
    assert_int_equal(arg, 6);
    fixture_pass(&w->f, 2 * w->f.router.config.task_wait_ms);
    hears_nothing(w);
}

static void the_death_of_a_rank_costs_its_own_tasks_only(void **state)
{
    struct world *w = *state;
    uint32_t arg, id, lost;
    for (uint32_t i = 1; i <= 6; i++)
        starts(w, i, "task");
    takes(w, 1, &lost);
    worker_hang_up(&w->f, &w->workers[1]);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 1, 1, NULL);
    const char *got = client_hears(&w->c);
    assert_true(got && strstr(got, " ERROR rank=1 exit=1 UNAVAILABLE "));
    id = takes(w, 0, &arg);
    worker_says(&w->f, &w->workers[0], id, "0");
    takes(w, 0, &arg);
    assert_int_equal(arg, 5);
    dial(w, 1, 2); // a rank that connects has a slot
    takes(w, 1, &arg);
    assert_int_equal(arg, 6);
}

static void they_outlive_a_restart_but_not_the_group(void **state)
{
    struct world *w = *state;
    uint32_t arg;
    for (uint32_t i = 1; i <= 6; i++)
        starts(w, i, "task");
    for (uint32_t i = 0; i < WORLD; i++)
        takes(w, i, &arg);
    fixture_group(&w->f, WORLD, 2, NULL);
    for (uint32_t i = 0; i < WORLD; i++) {
        assert_true(strstr(client_hears(&w->c), "UNAVAILABLE") != NULL);
        worker_hang_up(&w->f, &w->workers[i]);
    }
    hears_nothing(w);
    dial(w, 3, 2);
    takes(w, 3, &arg);
    assert_int_equal(arg, 5);
    fixture_group(&w->f, WORLD, 2, "it has failed");
    hears_about(w, "6 ERROR UNAVAILABLE", "takes no calls: it has failed");
}

static void a_task_whose_callers_take_all_slots_is_refused(void **state)
{
    struct world *w = *state;
    uint32_t arg;
    for (uint32_t i = 0; i < 3; i++)
        worker_hang_up(&w->f, &w->workers[i]);
    sends_group(w, 1, "{\"method\":\"task\"}", "[1]");
    takes(w, 3, &arg);
    sends_group(w, 2, "{\"method\":\"task\",\"via\":[\"ml/llama/3/task\"]}", "[2]");
    hears(w, "2 ERROR CONFLICT a deadlock: task() waits for a slot of ml/llama, and all slots are taken by methods "
             "that wait for this call");
    sends_group(w, 3, "{\"method\":\"ask\",\"via\":[\"ml/llama/3/task\"]}", "[3]"); // has slots of its own
    takes(w, 3, &arg);
    assert_int_equal(arg, 3);
    sends_group(w, 4, "{\"method\":\"ask\",\"via\":[\"ml/llama/3/ask\",\"ml/b/0/f\",\"ml/llama/3/tell\"]}", "[4]");
    takes(w, 3, &arg); // two of three
    assert_int_equal(arg, 4);
    sends_group(w, 5, "{\"method\":\"task\",\"via\":[\"ml/other/3/task\"]}", "[5]");
    hears_nothing(w); // it waits
}

static void what_cannot_run_is_refused_at_once(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = "{\"method\":\"no\"}"});
    hears(w, "1 ERROR NOT_FOUND ml/llama has no method 'no'; it has: add, ask, task, tell");
    static const char *const bad[] = {"{\"group\":\"a\"}", "{\"limit\":2}", "{\"group\":\"a\",\"limit\":0}", "7"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err err = ERR_INIT;
        struct worker again;
        char hello[256];
        snprintf(hello, sizeof hello,
                 "{\"methods\":[{\"name\":\"f\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ANY\",\"concurrency\":%s}]}",
                 bad[i]);
        assert_int_equal(worker_dial_as(&w->f, &again, 0, 1, hello, &err), ERR_INVALID);
        assert_string_equal(err.msg, "HELLO: \"concurrency\" of method f needs a \"group\" and a \"limit\" from 1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TASK_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, world_teardown)
        TASK_TEST(ten_tasks_on_four_slots_are_three_waves),
        TASK_TEST(who_is_done_first_gets_the_next_one),
        TASK_TEST(a_concurrency_group_has_as_many_slots_as_its_limit),
        TASK_TEST(a_rank_that_runs_another_call_gets_none),
        TASK_TEST(tasks_hold_up_no_other_calls),
        TASK_TEST(what_waits_can_be_canceled_and_has_a_deadline),
        TASK_TEST(what_waits_without_a_deadline_has_one_all_the_same),
        TASK_TEST(the_death_of_a_rank_costs_its_own_tasks_only),
        TASK_TEST(they_outlive_a_restart_but_not_the_group),
        TASK_TEST(a_task_whose_callers_take_all_slots_is_refused),
        TASK_TEST(what_cannot_run_is_refused_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
