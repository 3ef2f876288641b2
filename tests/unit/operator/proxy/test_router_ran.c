// SPDX-License-Identifier: Apache-2.0
// Errors say whether the call has run: nothing if a rank may have run it, otherwise that no rank has.
#include "tests/unit/operator/proxy/proxy_world.h"
#include "tests/unit/support/text_ends.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SOON "{\"method\":\"add\",\"timeoutMs\":50}"

static void fails_with(struct world *w, const char *code, bool unsent)
{
    const char *got = client_hears(&w->c);
    if (!got || !strstr(got, code))
        fail_msg("%s came, not %s", got ? got : "nothing", code);
    if (w->c.unsent != unsent)
        fail_msg("%s: it %s", got, unsent ? "has certainly not run" : "may have run");
}

static void late(struct world *w, bool unsent)
{
    fixture_pass(&w->f, 50);
    fails_with(w, "TIMEOUT", unsent);
}

// Sends the first piece of a call. More is to come.
static void begins(struct world *w)
{
    struct err err = ERR_INIT;
    char body[64];
    int n = snprintf(body + 4, sizeof body - 4, "%s[1", SOON);
    record_call_prefix(body, (uint32_t)strlen(SOON));
    const struct record r = {.h = {.type = RECORD_CALL,
                                   .call = 1,
                                   .rank = RECORD_GROUP,
                                   .dispatch = RECORD_ONE_TO_ALL,
                                   .execute = RECORD_ALL,
                                   .flags = RECORD_MORE},
                             .body = body,
                             .len = 4 + (size_t)n,
                             .seq = 1};
    assert_int_equal(session_record(w->c.session, &r, UINT64_MAX, &err), 0);
}

static void what_waited_for_its_group_until_its_deadline_has_not_run(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, SOON, "[1]");
    late(w, true);
    begins(w); // the client is also told to hold the rest
    late(w, true);
    sends_group(w, 1, ADD, "[1]");
    client_cancel(&w->c, 1);
    fails_with(w, "CANCELED", true);
    sends_group(w, 1, ADD, "[1]");
    fixture_group(&w->f, WORLD, 2, "it has failed");
    fails_with(w, "UNAVAILABLE", true);
}

static void nor_has_what_waited_for_a_slot(void **state)
{
    struct world *w = *state;
    for (uint32_t i = 0; i < WORLD; i++)
        sends(w,
              (struct call_text){.id = 10 + i, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = ADD, .args = "[]"});
    sends(w, (struct call_text){.id = 1, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = SOON, .args = "[]"});
    late(w, true);
}

static void nor_what_ranks_have_only_a_part_of(void **state)
{
    struct world *w = *state;
    begins(w);
    late(w, true);
}

static void nor_what_was_refused(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, "{\"method\":\"add\",\"group\":\"nobody\"}", "[1]");
    fails_with(w, "NOT_FOUND", true);
    sends_group(w, 1, "{\"method\":\"ad\"}", "[1]");
    fails_with(w, "NOT_FOUND", true);
    sends(w, (struct call_text){.id = 1, .rank = WORLD, .head = ADD, .args = "[1]"});
    fails_with(w, "INVALID", true);
}

static void what_a_rank_has_may_have_run(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, SOON, "[1]");
    ranks_read(w);
    late(w, false);
    sends_group(w, 1, ADD, "[1]");
    ranks_read(w);
    client_cancel(&w->c, 1);
    fails_with(w, "CANCELED", false);
    sends_group(w, 1, ADD, "[2]");
    for (struct wire_record *r; (r = wire_next(&w->workers[2].wire));)
        free(r);
    worker_hang_up(&w->f, &w->workers[2]);
    fixture_pass(&w->f, 200);
    fails_with(w, "UNAVAILABLE", false);
}

static void of_a_dead_rank_it_is_what_it_never_got_that_has_not_run(void **state)
{
    struct world *w = *state;
    struct worker *dead = &w->workers[2];
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD, .args = "[1]"});
    router_leave(&w->f.router, dead->member);
    dead->member = NULL;
    record_writer_done(&dead->wire.out);
    record_reader_done(&dead->wire.reader);
    router_worker_exited(&w->f.router, FIXTURE_UID, 1, 2, 137, NULL);
    fails_with(w, "UNAVAILABLE", true);
}

// The connection of a rank that is sent away still sends what is in its queue.
static void what_a_rank_had_not_read_when_it_was_sent_away_is_taken_back_and_has_not_run(void **state)
{
    struct world *w = *state;
    struct worker *old = &w->workers[2];
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD, .args = "[1]"});
    fixture_group(&w->f, WORLD, 2, NULL);
    assert_int_equal(old->member->peer.close_code, ERR_CONFLICT);
    fails_with(w, "UNAVAILABLE", true);
    assert_null(wire_next(&old->wire));
}

static void what_it_had_read_may_have_run(void **state)
{
    struct world *w = *state;
    sends(w, (struct call_text){.id = 1, .rank = 2, .head = ADD, .args = "[1]"});
    ranks_read(w);
    fixture_group(&w->f, WORLD, 2, NULL);
    fails_with(w, "UNAVAILABLE", false);
}

static void gets_nothing(struct world *w, uint32_t rank)
{
    assert_null(wire_next(&w->workers[rank].wire));
    assert_int_equal(w->workers[rank].member->n_pending, 0);
}

// A hung rank does not read. Calls that still wait for it are not sent once their client got an error.
static void what_no_rank_has_read_is_taken_back_and_has_not_run(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, SOON, "[1]");
    late(w, true);
    sends(w, (struct call_text){.id = 1, .rank = 1, .head = ADD, .args = "[1]"});
    client_cancel(&w->c, 1);
    fails_with(w, "CANCELED", true);
    sends_group(w, 1, ADD, "[1]");
    client_close(&w->c);
    client_open(&w->f, &w->c, "llama");
    for (uint32_t i = 0; i < WORLD; i++)
        gets_nothing(w, i);
    sends_group(w, 1, ADD, "[2]"); // the next call is sent
    for (uint32_t i = 0; i < WORLD; i++)
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[2]"), "2");
    hears(w, "1 RESULT [2,2,2,2]");
}

static void what_one_rank_has_read_is_taken_back_from_the_others(void **state)
{
    struct world *w = *state;
    sends_group(w, 1, SOON, "[1]");
    uint32_t id = worker_takes(&w->workers[2], "[1]");
    late(w, false);
    for (uint32_t i = 0; i < WORLD; i++)
        if (i != 2)
            gets_nothing(w, i);
    cancels_at(w, 2, id);
    worker_says(&w->f, &w->workers[2], id, "1"); // the call is over at this rank, too
    sends_group(w, 1, SOON, "[1]");
    worker_says(&w->f, &w->workers[2], worker_takes(&w->workers[2], "[1]"), "1");
    late(w, false);
    for (uint32_t i = 0; i < WORLD; i++)
        gets_nothing(w, i);
}

static void task(struct client *c, uint32_t id, const char *args)
{
    struct err err = ERR_INIT;
    const struct call_text call = {.id = id, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = ADD, .args = args};
    assert_int_equal(client_send(c, &call, &err), 0);
}

// All ranks have tasks of another client, and a further task waits for a slot with `args`. One task is withdrawn.
static void a_slot_is_free_again(struct world *w, void (*take_back)(struct client *c), const char *args)
{
    struct client other;
    uint32_t n = 0;
    client_open(&w->f, &other, "llama");
    task(&other, 1, "[1]");
    for (uint32_t i = 1; i < WORLD; i++)
        task(&w->c, 10 + i, "[1]");
    task(&w->c, 20, args);
    take_back(&other);
    for (uint32_t i = 0; i < WORLD; i++) {
        struct wire_record *r = wire_next(&w->workers[i].wire);
        assert_non_null(r);
        n += text_ends(r->body + r->len - strlen(args), args);
        worker_says(&w->f, &w->workers[i], r->h.call, "1");
        free(r);
    }
    assert_int_equal(n, 1);
    while (client_hears(&w->c))
        ;
    client_close(&other);
}

static void cancels(struct client *c)
{
    client_cancel(c, 1);
}

static void a_task_gets_the_slot_of_one_that_was_taken_back(void **state)
{
    struct world *w = *state;
    a_slot_is_free_again(w, cancels, "[2]");
    a_slot_is_free_again(w, client_close, "[3]");
}

// The report of the process's end may still arrive.
static void nobody_knows_of_what_an_agent_is_to_end(void **state)
{
    struct world *w = *state;
    sends(w,
          (struct call_text){.id = 1, .rank = 1, .head = "{\"method\":\"group.kill\",\"timeoutMs\":50}", .args = ""});
    late(w, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(what_waited_for_its_group_until_its_deadline_has_not_run),
        PROXY_TEST(nor_has_what_waited_for_a_slot),
        PROXY_TEST(nor_what_ranks_have_only_a_part_of),
        PROXY_TEST(nor_what_was_refused),
        PROXY_TEST(what_a_rank_has_may_have_run),
        PROXY_TEST(of_a_dead_rank_it_is_what_it_never_got_that_has_not_run),
        PROXY_TEST(what_a_rank_had_not_read_when_it_was_sent_away_is_taken_back_and_has_not_run),
        PROXY_TEST(what_it_had_read_may_have_run),
        PROXY_TEST(what_no_rank_has_read_is_taken_back_and_has_not_run),
        PROXY_TEST(what_one_rank_has_read_is_taken_back_from_the_others),
        PROXY_TEST(a_task_gets_the_slot_of_one_that_was_taken_back),
        PROXY_TEST(nobody_knows_of_what_an_agent_is_to_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
