// SPDX-License-Identifier: Apache-2.0
// The outcome of calls when processes die, groups restart or are deleted, and limits are reached (docs/calls.md).
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

static void a_dead_workers_calls_fail_with_its_exit_code(void **state)
{
    struct world *w = *state;
    const char *want = "1 ERROR rank=2 exit=137 UNAVAILABLE rank 2 of ml/llama (pod llama-2-0 on node n2) exited with "
                       "code 137 while add() was pending; it may have run";
    sends_group(w, 1, ADD, "{}"); // the connection ends before the agent reports
    worker_hang_up(&w->f, &w->workers[2]);
    hears_nothing(w);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 2, 137, NULL);
    hears(w, want);
    worker_start(&w->f, &w->workers[2], 2, 2);
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD}); // the agent reports before the connection ends
    worker_takes(&w->workers[2], "");
    router_worker_exited(&w->f.router, FIXTURE_UID, 2, 2, 137, NULL);
    hears(w, want);
    assert_int_equal(w->workers[2].member->peer.close_code, ERR_GONE);
    worker_hang_up(&w->f, &w->workers[2]);
}

// No byte of the call has gone out, so the client may send it again, whatever the method does.
static void what_a_dead_rank_was_not_sent_has_not_run(void **state)
{
    struct world *w = *state;
    struct worker *dead = &w->workers[2];
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD});
    worker_takes(dead, "");
    sends(w, (struct call_text){.id = 2, .rank = 2, .head = ADD}); // stays in the queue, as if the rank read slowly
    sends_group(w, 3, ADD, "[1]");
    router_leave(&w->f.router, dead->member);
    dead->member = NULL;
    record_writer_done(&dead->wire.out);
    record_reader_done(&dead->wire.reader);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 2, 137, NULL);
    hears(
        w,
        "1 ERROR rank=2 exit=137 UNAVAILABLE rank 2 of ml/llama (pod llama-2-0 on node n2) exited with code 137 while "
        "add() was pending; it may have run");
    hears(w, "2 ERROR UNAVAILABLE rank 2 of ml/llama (pod llama-2-0 on node n2) exited with code 137 while add() was "
             "pending; the call was not sent to this rank, and has not run");
    hears(
        w,
        "3 ERROR rank=2 exit=137 UNAVAILABLE rank 2 of ml/llama (pod llama-2-0 on node n2) exited with code 137 while "
        "add() was pending; other ranks may have run the call; this one has not");
}

static void without_an_exit_code_calls_fail_after_a_moment(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, "{}");
    worker_hang_up(&w->f, &w->workers[2]);
    assert_int_equal(router_wait_ms(&w->f.router), 200);
    fixture_pass(&w->f, 199);
    hears_nothing(w);
    fixture_pass(&w->f, 1);
    hears(w, "1 ERROR rank=2 UNAVAILABLE rank 2 of ml/llama (pod llama-2-0 on node n2) lost its connection while add() "
             "was pending; it may have run");
}

static void a_process_that_dials_again_takes_its_place_and_old_calls_fail(void **state)
{
    struct world *w = *state;
    struct worker again;
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD});
    worker_takes(&w->workers[1], "");
    worker_start(&w->f, &again, 1, 1); // the old connection is half open
    hears(w, "1 ERROR rank=1 UNAVAILABLE *");
    assert_int_equal(w->workers[1].member->peer.close_code, ERR_CONFLICT);
    struct err err = ERR_INIT;
    // The router does not listen to the old connection any more.
    assert_int_equal(worker_answer(&w->f, &w->workers[1], 1, RECORD_RESULT, "0", &err), 0);
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD});
    worker_hang_up(&w->f, &w->workers[1]);
    worker_says(&w->f, &again, worker_takes(&again, ""), "3");
    hears(w, "1 RESULT 3");
    worker_hang_up(&w->f, &again);
}

static void a_process_of_an_older_attempt_is_refused(void **state)
{
    struct world *w = *state;
    struct worker old;
    struct err err = ERR_INIT;
    fixture_group(&w->f, WORLD, 3, NULL);
    for (uint32_t i = 0; i < WORLD; i++)
        assert_int_equal(w->workers[i].member->peer.close_code, ERR_CONFLICT);
    assert_int_equal(worker_dial(&w->f, &old, 1, 2, &err), ERR_CONFLICT);
    assert_string_equal(err.msg, "rank 1 of ml/llama: attempt 2 is over, the group is at attempt 3");
    worker_hang_up(&w->f, &w->workers[1]);
    worker_start(&w->f, &w->workers[1], 1, 4); // the watch has not reported this attempt yet
    assert_int_equal(worker_dial(&w->f, &old, 1, 3, &err), ERR_CONFLICT);
    router_worker_exited(&w->f.router, FIXTURE_UID, 4, 1, 0, NULL);
    assert_int_equal(worker_dial(&w->f, &old, 1, 4, &err), ERR_CONFLICT); // that process has ended
    assert_int_equal(worker_dial(&w->f, &old, WORLD, 4, &err), ERR_INVALID);
    struct member *m;
    assert_int_equal(router_join(&w->f.router, &(struct member_identity){.group_uid = "uid-2", .attempt = 1}, "{}", 2,
                                 NULL, NULL, &m, &err),
                     ERR_UNAVAILABLE);
}

static void a_bad_hello_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"methods\":[],\"awaits\":\"0123\"}",
        "{\"methods\":[],\"awaits\":5}",
        "{\"methods\":1}",
        "{\"methods\":[{}]}",
        "{\"methods\":[{\"name\":\"a\",\"dispatch\":\"ONE_TO_ALL\"}]}",
        "{\"methods\":[{\"name\":\"a\",\"dispatch\":\"?\",\"execute\":\"ALL\"}]}",
        "{\"methods\":[{\"name\":\"\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"}]}",
        "{\"methods\":[{\"name\":\"a\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},"
        "{\"name\":\"a\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"}]}",
    };
    struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct member *m = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(router_join(&w->f.router, &(struct member_identity){.group_uid = FIXTURE_UID, .attempt = 1},
                                     bad[i], strlen(bad[i]), NULL, NULL, &m, &err),
                         ERR_INVALID);
        assert_true(str_starts(err.msg, "HELLO"));
    }
}

static void a_call_before_ready_waits_for_all_of_its_ranks(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, "[1]");
    sends(w, (struct call_text){.id = 2, .rank = 0, .head = ADD, .args = "[2]"}); // behind the first call
    for (uint32_t i = 0; i < WORLD; i++) {
        if (i)
            assert_int_equal(worker_takes(&w->workers[0], ""), 0);
        worker_start(&w->f, &w->workers[i], i, 1);
    }
    uint32_t first = worker_takes(&w->workers[0], "[1]"), second = worker_takes(&w->workers[0], "[2]");
    worker_says(&w->f, &w->workers[0], second, "2");
    hears(w, "2 RESULT 2");
    worker_says(&w->f, &w->workers[0], first, "0");
    for (uint32_t i = 1; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[1]"), "0");
    hears(w, "1 RESULT [0,0,0,0]");
}

static void the_welcome_goes_out_before_calls_that_have_waited(void **state)
{
    struct world *w = *state;
    struct worker *first = &w->workers[0];
    struct err err = ERR_INIT;
    struct member_identity id = {FIXTURE_UID, 1, 0, "p", "n", "{\"ticket\":\"t\"}"};
    sends(w, (struct call_text){.id = 1, .rank = 0, .head = ADD});
    worker_start(&w->f, first, 0, 1);
    assert_int_not_equal(worker_takes(first, ""), 0);
    router_leave(&w->f.router, first->member);
    sends(w, (struct call_text){.id = 2, .rank = 0, .head = ADD});
    assert_int_equal(
        router_join(&w->f.router, &id, "{\"methods\":[]}", 14, &first->wire.out, first, &first->member, &err), 0);
    router_turn(&w->f.router);
    struct wire_record *r = wire_next(&first->wire);
    assert_int_equal(r->h.type, RECORD_WELCOME);
    assert_string_equal(r->body, id.welcome);
    free(r);
    assert_int_not_equal(worker_takes(first, ""), 0);
}

static void one_clients_waiting_call_does_not_hold_up_anothers(void **state)
{
    struct world *w = *state;
    struct client other;
    struct err err = ERR_INIT;
    sends_group(w, 1, ADD, "[1]");
    client_open(&w->f, &other, "llama");
    worker_start(&w->f, &w->workers[0], 0, 1);
    struct call_text call = {.id = 1, .rank = 0, .head = ADD, .args = "[2]"};
    assert_int_equal(client_send(&other, &call, &err), 0);
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[2]"), "2");
    assert_string_equal(client_hears(&other), "1 RESULT 2");
    client_close(&other);
    hears_nothing(w);
}

static void a_waiting_call_ends_at_its_deadline_or_the_general_one(void **state)
{
    struct world *w = *state;
    worker_start(&w->f, &w->workers[1], 1, 1);
    sends_group(w, 1, "{\"method\":\"add\",\"timeoutMs\":50}", "[]");
    sends_group(w, 2, ADD, "[]");
    fixture_pass(&w->f, 50);
    hears(w, "1 ERROR TIMEOUT add() of ml/llama: not done within 50 ms: ml/llama is not ready: 1 of 4 ranks are "
             "connected, missing: 0, 2, 3");
    fixture_pass(&w->f, 60000);
    hears(w, "2 ERROR TIMEOUT add() of ml/llama: not done within 60000 ms: *");
}

static void the_general_deadline_ends_with_the_waiting(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 0, .head = ADD});
    worker_start(&w->f, &w->workers[0], 0, 1);
    assert_int_equal(router_wait_ms(&w->f.router), -1);
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], ""), "1");
    hears(w, "1 RESULT 1");
}

static void what_waited_behind_a_call_that_has_gone_goes_on(void **state)
{
    struct world *w = *state;
    worker_start(&w->f, &w->workers[0], 0, 1);
    sends_group(w, 1, "{\"method\":\"add\",\"timeoutMs\":50}", "[]");
    sends_group(w, 2, ADD, "[]");
    sends(w, (struct call_text){.id = 3, .rank = 0, .head = ADD, .args = "[3]"});
    fixture_pass(&w->f, 50);
    hears(w, "1 ERROR TIMEOUT*");
    assert_int_equal(worker_takes(&w->workers[0], ""), 0);
    client_cancel(&w->c, 2);
    hears(w, "2 ERROR CANCELED add() of ml/llama was canceled by its client before it was sent to a rank");
    assert_int_not_equal(worker_takes(&w->workers[0], "[3]"), 0);
}

static void a_caller_may_ask_not_to_wait(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"add\",\"whenNotReady\":\"Refuse\"}", "[]");
    hears(w,
          "1 ERROR UNAVAILABLE add() was not sent: ml/llama is not ready: 0 of 4 ranks are connected, missing: 0, 1, "
          "2, 3");
}

static void a_group_that_has_ended_refuses_with_its_reason(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, "[]");
    fixture_group(&w->f, WORLD, 1, "Failed: rank 3 exited with 1");
    hears(w, "1 ERROR UNAVAILABLE ml/llama takes no calls: Failed: rank 3 exited with 1");
    sends_group(w, 2, ADD, "[]");
    hears(w, "2 ERROR UNAVAILABLE *");
}

static void a_call_of_an_older_attempt_is_refused_and_of_a_newer_one_waits(void **state)
{
    struct world *w = *state;
    fixture_group(&w->f, WORLD, 2, NULL);
    for (uint32_t i = 0; i < WORLD; i++) {
        worker_hang_up(&w->f, &w->workers[i]);
        worker_start(&w->f, &w->workers[i], i, 2);
    }
    sends(w, (struct call_text){.id = 1, .rank = 0, .head = "{\"method\":\"add\",\"attempt\":1}"});
    hears(w, "1 ERROR CONFLICT the call is for attempt 1 of ml/llama, which has ended: the group is at attempt 2");
    sends(w, (struct call_text){.id = 2, .rank = 0, .head = "{\"method\":\"add\",\"attempt\":2}"});
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], ""), "1");
    hears(w, "2 RESULT 1");
    sends(w, (struct call_text){.id = 3, .rank = 0, .head = "{\"method\":\"add\",\"attempt\":3}"});
    hears_nothing(w);
    sends(w, (struct call_text){.id = 4, .rank = 0, .head = "{\"method\":\"add\",\"attempt\":3,\"timeoutMs\":50}"});
    fixture_pass(&w->f, 50);
    hears_about(w, "4 ERROR TIMEOUT",
                "not done within 50 ms: the call is for attempt 3 of ml/llama, but the group is at attempt 2");
    fixture_group(&w->f, WORLD, 4, NULL);
    hears(w, "3 ERROR CONFLICT *");
}

static void calls_wait_through_a_restart_and_pending_ones_fail_at_once(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, ADD, "[1]");
    fixture_group(&w->f, WORLD, 2, NULL);
    hears_about(w, "1 ERROR rank=0 UNAVAILABLE", "was ended by a restart of its group while add() was pending");
    sends_group(w, 2, ADD, "[2]");
    hears_nothing(w);
    for (uint32_t i = 0; i < WORLD; i++) {
        worker_hang_up(&w->f, &w->workers[i]);
        worker_start(&w->f, &w->workers[i], i, 2);
    }
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[2]"), "2");
    hears(w, "2 RESULT [2,2,2,2]");
}

static void another_world_ends_the_calls_made_for_the_old_one(void **state)
{
    struct world *w = *state;
    worker_hang_up(&w->f, &w->workers[3]);
    sends_group(w, 1, ADD, "[1]");
    fixture_group(&w->f, 2, 2, NULL);
    hears(w, "1 ERROR CONFLICT ml/llama had 4 ranks when the call came and has 2 now; call again");
}

static void a_deleted_group_answers_all_it_has(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 0, .head = ADD});
    worker_hang_up(&w->f, &w->workers[3]);
    sends_group(w, 2, ADD, "[]"); // this call waits
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_turn(&w->f.router);
    hears(w, "1 ERROR GONE ml/llama was deleted while add() was pending");
    hears(w, "2 ERROR GONE *");
    assert_int_equal(w->workers[0].member->peer.close_code, ERR_GONE);
    sends_group(w, 3, ADD, "[]");
    hears(w, "3 ERROR NOT_FOUND there is no WorkerGroup ml/llama");
}

static void a_new_object_of_the_same_name_is_another_group(void **state)
{
    struct world *w = *state;
    struct group_facts facts = {.uid = "uid-2", .ns = "ml", .name = "llama", .world = 1, .attempt = 1, .oldest = 1};
    router_group_set(&w->f.router, &facts); // before the deletion of the old object is seen
    router_group_gone(&w->f.router, FIXTURE_UID);
    sends_group(w, 1, "{\"method\":\"group.info\"}", NULL);
    hears_about(w, "1 RESULT", "\"uid\":\"uid-2\"");
}

static void a_group_that_calls_name_is_the_one_that_is_there_now(void **state)
{
    struct world *w = *state;
    static const char head[] = "{\"method\":\"group.info\",\"group\":\"llama\"}";
    struct group_facts facts = {.uid = "uid-2", .ns = "ml", .name = "llama", .world = 1, .attempt = 1, .oldest = 1};
    sends_group(w, 1, head, NULL);
    hears_about(w, "1 RESULT", "\"uid\":\"uid-1\"");
    sends_group(w, 2, "{\"method\":\"group.info\",\"group\":\"llam\"}", NULL);
    hears(w, "2 ERROR NOT_FOUND there is no WorkerGroup ml/llam");
    sends_group(w, 3, head, NULL);
    hears_about(w, "3 RESULT", "\"uid\":\"uid-1\"");
    router_group_set(&w->f.router, &facts);
    sends_group(w, 4, head, NULL);
    hears_about(w, "4 RESULT", "\"uid\":\"uid-2\"");
    router_group_gone(&w->f.router, FIXTURE_UID);
    router_group_gone(&w->f.router, "uid-2");
    sends_group(w, 5, head, NULL);
    hears(w, "5 ERROR NOT_FOUND there is no WorkerGroup ml/llama");
}

static void info_tells_what_is_connected(void **state)
{
    struct world *w = *state;
    worker_start(&w->f, &w->workers[1], 1, 1);
    sends_group(w, 1, "{\"method\":\"group.info\"}", NULL);
    hears(w, "1 RESULT {\"namespace\":\"ml\",\"name\":\"llama\",\"uid\":\"uid-1\",\"attempt\":1,\"worldSize\":4,"
             "\"connected\":1,\"ready\":false,\"workers\":[{\"rank\":0,\"connected\":false},{\"rank\":1,\"connected\":"
             "true,\"attempt\":1,\"pod\":\"llama-1-0\",\"node\":\"n1\"},{\"rank\":2,\"connected\":false},{\"rank\":3,"
             "\"connected\":false}],\"methods\":[{\"name\":\"add\",\"dispatch\":\"ONE_TO_ALL\",\"execute\":\"ALL\"},{"
             "\"name\":\"each\",\"dispatch\":\"ALL_TO_ALL\",\"execute\":\"ALL\"},{\"name\":\"first\",\"dispatch\":"
             "\"ALL_TO_ALL\",\"execute\":\"RANK_ZERO\"}]}");
}

static void info_of_a_large_group_comes_in_pages(void **state)
{
    struct world *w = *state;
    fixture_group(&w->f, 640000, 1, NULL);
    sends_group(w, 1, "{\"method\":\"group.info\"}", NULL);
    const char *got = client_hears(&w->c);
    assert_non_null(strstr(got, "{\"rank\":1023,\"connected\":false}],\"next\":1024"));
    assert_true(strlen(got) < 64 * 1024);
    sends_group(w, 2, "{\"method\":\"group.info\"}", "[639999]");
    got = client_hears(&w->c);
    assert_non_null(strstr(got, "\"workers\":[{\"rank\":639999,\"connected\":false}],\"m"));
    sends_group(w, 3, "{\"method\":\"group.info\"}", "640000");
    hears(w,
          "3 ERROR INVALID the argument of group.info is the rank to begin with, and ml/llama has ranks 0 to 639999*");
}

static void calls_are_bounded_in_number(void **state)
{
    struct world *w = *state;
    for (uint32_t id = 1; id <= fixture_limits.session_calls; id++)
        sends(w, (struct call_text){.id = id, .rank = 0, .head = ADD});
    hears_nothing(w);
    sends(w, (struct call_text){.id = 1000, .rank = 0, .head = ADD});
    hears(w, "1000 ERROR THROTTLED 100 calls of this connection have no answer yet, which is the limit; wait for some "
             "of them");
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], ""), "1");
    hears(w, "1 RESULT 1");
    sends(w, (struct call_text){.id = 1000, .rank = 0, .head = ADD});
    hears_nothing(w);
}

// A call that a rank still has counts, even though its client has gone.
static void a_rank_takes_only_so_many_calls(void **state)
{
    struct world *w = *state;
    for (uint32_t i = 0; i < fixture_limits.member_calls; i++) {
        sends(w, (struct call_text){.id = 1, .rank = 0, .head = ADD});
        wire_pass(&w->workers[0].wire);
        client_cancel(&w->c, 1);
        hears(w, "1 ERROR CANCELED*");
    }
    sends_group(w, 1, ADD, "[]");
    hears(w, "1 ERROR THROTTLED rank 0 of ml/llama has 500 calls that it has not answered, which is the limit; wait "
             "for some of them");
    assert_int_equal(worker_takes(&w->workers[1], ""), 0);
}

static void a_slow_client_is_not_read_and_then_closed(void **state)
{
    struct world *w = *state;
    if (fixture_cuts) // then the call fails, because the rest of the result can be dropped
        return;
    char *mib = xcalloc(1, 1 << 20);
    memset(mib, '1', (1 << 20) - 1);
    struct session *s = w->c.session;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(s->peer.read, i < 4);
        sends(w, (struct call_text){.id = 1, .rank = 0, .head = ADD});
        worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], ""), mib);
    }
    assert_int_equal(s->peer.close_code, ERR_LIMIT); // the answer is longer than the queue takes
    assert_true(str_starts(s->peer.close_reason, "the client reads its answers too slowly"));
    free(mib);
}

static void a_client_is_read_again_when_memory_is_free(void **state)
{
    struct world *w = *state;
    char *args = xcalloc(1, (1 << 20) - 32);
    args[0] = '[';
    memset(args + 1, ' ', (1 << 20) - 35);
    args[(1 << 20) - 34] = ']';
    struct session *s = w->c.session;
    struct peer *changed = NULL;
    for (uint32_t id = 1; id <= 5; id++)
        sends_group(w, id, ADD, args);
    assert_false(s->peer.read);
    for (struct peer *p; (p = router_changed(&w->f.router));)
        changed = p == &s->peer ? p : changed;
    assert_ptr_equal(changed, &s->peer);
    for (uint32_t i = 0; i < WORLD; i++) {
        for (uint32_t id = 1; id <= 5; id++)
            assert_int_not_equal(worker_takes(&w->workers[i], args), 0);
        assert_false(s->peer.read); // all ranks share one copy, until it was sent to the last of them
    }
    router_turn(&w->f.router);
    assert_true(s->peer.read);
    assert_ptr_equal(router_changed(&w->f.router), &s->peer);
    free(args);
}

static void a_client_is_heard_while_long_calls_wait_for_their_group(void **state)
{
    struct world *w = *state;
    char *args = xcalloc(1, 1 << 20);
    memset(args, ' ', (1 << 20) - 1);
    args[0] = '[';
    args[(1 << 20) - 2] = ']';
    worker_hang_up(&w->f, &w->workers[0]);
    for (uint32_t id = 1; id <= 6; id++)
        sends_group(w, id, ADD, args);
    assert_true(w->c.session->peer.read);
    for (uint32_t id = 1; id <= 6; id++) {
        client_cancel(&w->c, id);
        assert_non_null(strstr(client_hears(&w->c), "ERROR CANCELED"));
    }
    assert_int_equal(w->c.session->waiting, 0);
    sends_group(w, 7, ADD, args);
    worker_start(&w->f, &w->workers[0], 0, 1);
    assert_int_equal(w->c.session->waiting, 0); // it was sent
    free(args);
}

static void a_rank_that_does_not_read_gets_no_more(void **state)
{
    struct world *w = *state;
    char *args = xcalloc(1, (1 << 20) - 32);
    memset(args, ' ', (1 << 20) - 33);
    for (uint32_t id = 1; id <= 7; id++)
        sends(w, (struct call_text){.id = id, .rank = 0, .head = ADD, .args = args});
    hears_nothing(w);
    sends_group(w, 8, ADD, args);
    hears_about(w, "8 ERROR THROTTLED", "rank 0 of ml/llama has no room for");
    free(args);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST(a_dead_workers_calls_fail_with_its_exit_code),
        PROXY_TEST(what_a_dead_rank_was_not_sent_has_not_run),
        PROXY_TEST(without_an_exit_code_calls_fail_after_a_moment),
        PROXY_TEST(a_process_that_dials_again_takes_its_place_and_old_calls_fail),
        PROXY_TEST(a_process_of_an_older_attempt_is_refused),
        PROXY_TEST_EMPTY(a_bad_hello_is_refused),
        PROXY_TEST_EMPTY(a_call_before_ready_waits_for_all_of_its_ranks),
        PROXY_TEST_EMPTY(the_welcome_goes_out_before_calls_that_have_waited),
        PROXY_TEST_EMPTY(one_clients_waiting_call_does_not_hold_up_anothers),
        PROXY_TEST_EMPTY(a_waiting_call_ends_at_its_deadline_or_the_general_one),
        PROXY_TEST_EMPTY(the_general_deadline_ends_with_the_waiting),
        PROXY_TEST_EMPTY(what_waited_behind_a_call_that_has_gone_goes_on),
        PROXY_TEST_EMPTY(a_caller_may_ask_not_to_wait),
        PROXY_TEST_EMPTY(a_group_that_has_ended_refuses_with_its_reason),
        PROXY_TEST(a_call_of_an_older_attempt_is_refused_and_of_a_newer_one_waits),
        PROXY_TEST(calls_wait_through_a_restart_and_pending_ones_fail_at_once),
        PROXY_TEST(another_world_ends_the_calls_made_for_the_old_one),
        PROXY_TEST(a_deleted_group_answers_all_it_has),
        PROXY_TEST(a_new_object_of_the_same_name_is_another_group),
        PROXY_TEST(a_group_that_calls_name_is_the_one_that_is_there_now),
        PROXY_TEST_EMPTY(info_tells_what_is_connected),
        PROXY_TEST(info_of_a_large_group_comes_in_pages),
        PROXY_TEST(calls_are_bounded_in_number),
        PROXY_TEST(a_rank_takes_only_so_many_calls),
        PROXY_TEST(a_slow_client_is_not_read_and_then_closed),
        PROXY_TEST(a_client_is_read_again_when_memory_is_free),
        PROXY_TEST(a_client_is_heard_while_long_calls_wait_for_their_group),
        PROXY_TEST(a_rank_that_does_not_read_gets_no_more),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fixture_cuts = true;
    return failed + cmocka_run_group_tests_name("in pieces", tests, NULL, NULL);
}
