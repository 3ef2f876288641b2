// SPDX-License-Identifier: Apache-2.0
// How much a turn of the loop does at most. However many calls end or are sent at the same time, other calls of the
// namespace wait for few of them, and calls of other namespaces for one turn.
#include "operator/proxy/router.h"
#include "operator/proxy/tenant.h"

#include "common/base/mem.h"
#include "tests/unit/clock_fake.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { SOME_CALLS = 7, TURN_WORK = 3 };

static void client_hears_end_of(struct world *w, uint32_t from, uint32_t to, const char *end)
{
    char want[128];
    for (uint32_t id = from; id <= to; id++) {
        snprintf(want, sizeof want, "%u ERROR %s *", id, end);
        hears(w, want);
    }
    hears_nothing(w);
}

static void some_calls_wait(struct world *w)
{
    w->f.router.config.turn_work = TURN_WORK;
    for (uint32_t id = 1; id <= SOME_CALLS; id++)
        sends(w, (struct call_text){.id = id, .rank = 0, .head = "{\"method\":\"add\",\"timeoutMs\":1000}"});
    assert_int_equal(router_wait_ms(&w->f.router), 1000);
}

static void the_calls_of_a_session_end_in_slices(void **state)
{
    struct world *w = *state;
    some_calls_wait(w);
    session_end(TAKE_PTR(w->c.session));
    for (uint32_t left = SOME_CALLS; left > 0; left -= MIN(left, (uint32_t)TURN_WORK)) {
        assert_int_equal(w->f.router.n_calls, left);
        assert_int_equal(router_wait_ms(&w->f.router), 0);
        router_turn(&w->f.router);
    }
    assert_int_equal(w->f.router.n_calls, 0);
    assert_int_equal(router_wait_ms(&w->f.router), -1);
    record_writer_done(&w->c.wire.out);
    record_reader_done(&w->c.wire.reader);
}

static void what_waited_for_a_session_that_ended_is_not_sent(void **state)
{
    struct world *w = *state;
    some_calls_wait(w);
    session_end(TAKE_PTR(w->c.session));
    worker_start(&w->f, &w->workers[0], 0, 1);
    while (router_wait_ms(&w->f.router) == 0)
        router_turn(&w->f.router);
    assert_int_equal(worker_takes(&w->workers[0], ""), 0);
    assert_int_equal(w->f.router.n_calls, 0);
    record_writer_done(&w->c.wire.out);
    record_reader_done(&w->c.wire.reader);
}

static void the_calls_of_a_deleted_group_end_in_slices(void **state)
{
    struct world *w = *state;
    some_calls_wait(w);
    router_group_gone(&w->f.router, FIXTURE_UID);
    for (uint32_t id = 1; id <= SOME_CALLS; id += TURN_WORK) {
        assert_int_equal(router_wait_ms(&w->f.router), 0);
        router_turn(&w->f.router);
        client_hears_end_of(w, id, MIN(id + TURN_WORK - 1, (uint32_t)SOME_CALLS), "GONE");
    }
    assert_int_equal(router_wait_ms(&w->f.router), -1);
}

static void calls_time_out_in_slices(void **state)
{
    struct world *w = *state;
    some_calls_wait(w);
    clock_fake_advance(&w->f.clock, 1000);
    for (uint32_t id = 1; id <= SOME_CALLS; id += TURN_WORK) {
        assert_int_equal(router_wait_ms(&w->f.router), 0);
        fixture_pass(&w->f, 0);
        for (uint32_t i = 0; i < MIN(SOME_CALLS + 1 - id, (uint32_t)TURN_WORK);
             i++) // all at the same time, in any order
            assert_non_null(strstr(client_hears(&w->c), " ERROR TIMEOUT "));
        hears_nothing(w);
    }
}

static void client_hears_timeouts(struct world *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) // all at the same time, in any order
        assert_non_null(strstr(client_hears(&w->c), " ERROR TIMEOUT "));
    hears_nothing(w);
}

static void calls_that_waited_are_sent_in_slices_and_in_order(void **state)
{
    struct world *w = *state;
    some_calls_wait(w);
    worker_start(&w->f, &w->workers[0], 0, 1);
    uint32_t last = 0, id, n = 0;
    for (bool more = true; more;) {
        uint32_t before = n;
        more = router_wait_ms(&w->f.router) == 0;
        for (; (id = worker_takes(&w->workers[0], "")); n++) {
            assert_true(id > last);
            last = id;
        }
        assert_true(n - before <= TURN_WORK);
        router_turn(&w->f.router);
    }
    assert_int_equal(n, SOME_CALLS);
}

static void kills_time_out_in_slices(void **state)
{
    struct world *w = *state;
    w->f.router.config.turn_work = TURN_WORK;
    for (uint32_t id = 1; id <= SOME_CALLS; id++)
        sends(w, (struct call_text){.id = id, .rank = 0, .head = "{\"method\":\"group.kill\",\"timeoutMs\":1000}"});
    clock_fake_advance(&w->f.clock, 1000);
    for (uint32_t left = SOME_CALLS; left > 0; left -= MIN(left, (uint32_t)TURN_WORK)) {
        assert_int_equal(router_wait_ms(&w->f.router), 0);
        fixture_pass(&w->f, 0);
        for (uint32_t i = 0; i < MIN(left, (uint32_t)TURN_WORK); i++)
            assert_non_null(strstr(client_hears(&w->c), " ERROR TIMEOUT "));
        hears_nothing(w);
    }
    assert_int_equal(router_wait_ms(&w->f.router), -1);
}

enum { MANY_RANKS = 320, UNITS = 1 + MANY_RANKS / 16 };

static void calls_of_many_ranks_are_more_work_than_calls_of_one(void **state)
{
    struct world *w = *state;
    struct tenant *t = map_get(&w->f.router.tenants, "ml");
    fixture_group(&w->f, MANY_RANKS, 1, NULL);
    while (tenants_next_turn(&w->f.router))
        ;
    sends_group(w, 1, "{\"method\":\"add\",\"timeoutMs\":1000}", "[]");
    assert_int_equal(t->spent, UNITS);
    for (uint32_t id = 2; id <= SOME_CALLS; id++)
        sends_group(w, id, "{\"method\":\"add\",\"timeoutMs\":1000}", "[]");
    w->f.router.config.turn_work = 2 * UNITS;
    clock_fake_advance(&w->f.clock, 1000);
    for (uint32_t left = SOME_CALLS, n; left > 0; left -= n) {
        fixture_pass(&w->f, 0);
        n = left - w->f.router.n_calls;
        assert_in_range(n, 1, 3); // a namespace has TENANT_PART at a time, so the last call may be begun with less
    }
    client_hears_timeouts(w, SOME_CALLS);
}

// Some get their errors at once, and some at the end of the turn.
static void the_calls_of_a_lost_rank_fail_in_slices(void **state)
{
    struct world *w = *state;
    worker_start(&w->f, &w->workers[0], 0, 1);
    some_calls_wait(w);
    while (router_wait_ms(&w->f.router) == 0)
        router_turn(&w->f.router);
    for (uint32_t i = 0; i < SOME_CALLS; i++)
        assert_true(worker_takes(&w->workers[0], ""));
    worker_hang_up(&w->f, &w->workers[0]);
    fixture_pass(&w->f, fixture_limits.exit_wait_ms);
    client_hears_end_of(w, 1, 2 * TURN_WORK,
                        "rank=0 UNAVAILABLE rank 0 of ml/llama (pod llama-0-0 on node n0) lost its connection");
    worker_start(&w->f, &w->workers[0], 0, 2); // a new process has nothing to do with it
    client_hears_end_of(w, 2 * TURN_WORK + 1, SOME_CALLS,
                        "rank=0 UNAVAILABLE rank 0 of ml/llama (pod llama-0-0 on node n0)");
    assert_int_equal(w->f.router.n_calls, 0);
}

// A namespace has one call, another one has as many as the proxy takes

enum { CLIENTS = 64, FEW_CLIENTS = 8, CALLS = 4096, TIMEOUT_MS = 1000 };

struct throng {
    struct proxy_fixture f;
    struct client many[CLIENTS], one; // in namespaces "web" and "ml"
    int n;                            // clients in `many`
};

static void web_group(struct throng *t, int i, const char *refusal)
{
    char name[16];
    snprintf(name, sizeof name, "g%d", i);
    router_group_set(
        &t->f.router,
        &(struct group_facts){
            .uid = name, .ns = "web", .name = name, .world = 1, .attempt = 1, .oldest = 1, .refusal = refusal});
}

// All calls wait, the calls of each client for another group.
static void throng_init(struct throng *t, int n)
{
    struct router_config limits = fixture_limits;
    struct call_text call = {.rank = 0, .head = "{\"method\":\"add\",\"timeoutMs\":1000}", .args = "[]"};
    struct err err = ERR_INIT;
    char name[16];
    t->n = n;
    limits.total_calls = 2 * CLIENTS * CALLS + 2;
    limits.session_calls = CALLS;
    limits.session_bytes = (size_t)64 << 20;
    limits.total_bytes = 4 * CLIENTS * limits.session_bytes;
    fixture_init(&t->f, &limits);
    fixture_group(&t->f, 1, 1, NULL);
    client_open(&t->f, &t->one, "llama");
    for (int i = 0; i < n; i++) {
        web_group(t, i, NULL);
        snprintf(name, sizeof name, "g%d", i);
        client_open_in(&t->f, &t->many[i], "web", name);
        for (call.id = 1; call.id <= CALLS; call.id++)
            assert_int_equal(client_send(&t->many[i], &call, &err), 0);
    }
    call.id = 1;
    assert_int_equal(client_send(&t->one, &call, &err), 0);
    assert_int_equal(t->f.router.n_calls, n * CALLS + 1);
}

static void throng_done(struct throng *t)
{
    for (int i = 0; i < t->n; i++)
        client_close(&t->many[i]);
    client_close(&t->one);
    fixture_done(&t->f);
}

// All of the others end at once. That is work for many turns of the loop, but the call of the other namespace is sent
// in the first one.
static void its_call_goes_out_in_one_turn(struct throng *t)
{
    struct worker w;
    worker_start(&t->f, &w, 0, 1); // ends the turn
    assert_true(worker_takes(&w, "[]"));
    assert_in_range(t->f.router.n_calls, (t->n - 1) * CALLS, t->n * CALLS);
    worker_hang_up(&t->f, &w);
}

static void one_call_is_not_behind_262144_that_are_refused(void **state)
{
    (void)state;
    struct throng t;
    throng_init(&t, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        web_group(&t, i, "the group is suspended");
    its_call_goes_out_in_one_turn(&t);
    throng_done(&t);
}

static void one_call_is_not_behind_thousands_of_deleted_groups(void **state)
{
    (void)state;
    struct throng t;
    char uid[16];
    throng_init(&t, FEW_CLIENTS);
    for (int i = 0; i < FEW_CLIENTS; i++) {
        snprintf(uid, sizeof uid, "g%d", i);
        router_group_gone(&t.f.router, uid);
    }
    its_call_goes_out_in_one_turn(&t);
    throng_done(&t);
}

static void one_call_is_not_behind_thousands_of_clients_that_hang_up(void **state)
{
    (void)state;
    struct throng t;
    throng_init(&t, FEW_CLIENTS);
    for (int i = 0; i < FEW_CLIENTS; i++) {
        session_end(TAKE_PTR(t.many[i].session));
        record_writer_done(&t.many[i].wire.out);
        record_reader_done(&t.many[i].wire.reader);
    }
    its_call_goes_out_in_one_turn(&t);
    throng_done(&t);
}

static void one_call_times_out_in_the_same_turn_as_thousands(void **state)
{
    (void)state;
    struct throng t;
    throng_init(&t, FEW_CLIENTS);
    fixture_pass(&t.f, TIMEOUT_MS);
    const char *got = client_hears(&t.one);
    assert_non_null(got);
    assert_ptr_equal(strstr(got, "1 ERROR TIMEOUT "), got);
    assert_in_range(t.f.router.n_calls, (t.n - 1) * CALLS, t.n * CALLS);
    throng_done(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(the_calls_of_a_session_end_in_slices),
        PROXY_TEST_EMPTY(what_waited_for_a_session_that_ended_is_not_sent),
        PROXY_TEST_EMPTY(the_calls_of_a_deleted_group_end_in_slices),
        PROXY_TEST_EMPTY(calls_time_out_in_slices),
        PROXY_TEST_EMPTY(kills_time_out_in_slices),
        PROXY_TEST_EMPTY(calls_that_waited_are_sent_in_slices_and_in_order),
        PROXY_TEST_EMPTY(calls_of_many_ranks_are_more_work_than_calls_of_one),
        PROXY_TEST_EMPTY(the_calls_of_a_lost_rank_fail_in_slices),
        cmocka_unit_test(one_call_is_not_behind_262144_that_are_refused),
        cmocka_unit_test(one_call_is_not_behind_thousands_of_deleted_groups),
        cmocka_unit_test(one_call_is_not_behind_thousands_of_clients_that_hang_up),
        cmocka_unit_test(one_call_times_out_in_the_same_turn_as_thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
