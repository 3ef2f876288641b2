// SPDX-License-Identifier: Apache-2.0
// What a turn of the loop does at most: however many calls end or go on at the same time, the others wait for few.
#include "operator/proxy/router.h"

#include "common/base/mem.h"
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
    char want[64];
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
             i++) // all at the same time: in any order
            assert_non_null(strstr(client_hears(&w->c), " ERROR TIMEOUT "));
        hears_nothing(w);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXY_TEST_EMPTY(the_calls_of_a_session_end_in_slices),
        PROXY_TEST_EMPTY(what_waited_for_a_session_that_ended_is_not_sent),
        PROXY_TEST_EMPTY(the_calls_of_a_deleted_group_end_in_slices),
        PROXY_TEST_EMPTY(calls_time_out_in_slices),
        PROXY_TEST_EMPTY(calls_that_waited_are_sent_in_slices_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
