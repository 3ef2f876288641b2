// SPDX-License-Identifier: Apache-2.0
// Calls that have to wait, with long arguments: the proxy keeps what has arrived, and the rest waits at the client.
#include "common/base/mem.h"
#include "tests/unit/operator/proxy/proxy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

enum { MOST = 4 }; // MiB that may wait whole

static int setup(void **state)
{
    world_setup(state);
    ((struct world *)*state)->f.router.config.max_whole = MOST * MIB;
    return 0;
}

static int setup_empty(void **state)
{
    world_setup_empty(state);
    ((struct world *)*state)->f.router.config.max_whole = MOST * MIB;
    return 0;
}

// A list of one string, `len` bytes long.
static struct call_pieces body_of(uint32_t id, const char *head, size_t len)
{
    char *args = xmalloc(len);
    memset(args, 'x', len);
    memcpy(args, "[\"", 2);
    memcpy(args + len - 2, "\"]", 2);
    struct call_pieces call = call_pieces(id, head, args, len);
    free(args);
    return call;
}

static int sends_piece(struct world *w, struct call_pieces *b, size_t n)
{
    struct err err = ERR_INIT;
    int got = call_pieces_send(&w->c, b, n, &err);
    assert_true(got >= 0);
    return got;
}

// Ranks read what has arrived for them, which is not a whole call yet.
static void reads(struct world *w)
{
    for (uint32_t i = 0; i < WORLD; i++)
        if (w->workers[i].member)
            assert_null(wire_next(&w->workers[i].wire));
    router_turn(&w->f.router);
}

static void sends_rest(struct world *w, struct call_pieces *b)
{
    while (b->at < b->len) {
        assert_int_equal(sends_piece(w, b, MIB), 0);
        if (b->at < b->len)
            reads(w);
    }
}

static bool told(struct world *w, enum record_type type)
{
    struct wire_record *r = wire_next(&w->c.wire);
    bool is = r && r->h.type == type && r->h.call == 1;
    free(r);
    return is;
}

static void takes(struct world *w, uint32_t rank, size_t len)
{
    struct wire_record *r = wire_next(&w->workers[rank].wire);
    struct err err = ERR_INIT;
    assert_non_null(r);
    assert_int_equal(r->h.type, RECORD_CALL);
    assert_int_equal(r->len, len);
    assert_memory_equal(r->body + r->len - 3, "x\"]", 3);
    assert_int_equal(worker_answer(&w->f, &w->workers[rank], r->h.call, RECORD_RESULT, "7", &err), 0);
    free(r);
}

static void start(struct world *w, uint32_t attempt)
{
    for (uint32_t i = 0; i < WORLD; i++)
        worker_start(&w->f, &w->workers[i], i, attempt);
}

// The length does not matter: 16 MiB, four times what may wait.
static void a_long_call_waits_for_its_group(void **state)
{
    struct world *w = *state;
    struct call_pieces b = body_of(1, ADD, 16 * MIB);
    size_t len = b.len;
    assert_int_equal(sends_piece(w, &b, MIB), 0);
    assert_true(told(w, RECORD_HOLD));
    sends_piece(w, &b, MIB); // this piece was on its way
    hears_nothing(w);
    assert_in_range(quota_used(w->c.session->quota), 2 * MIB, 5 * MIB);
    sends(w, (struct call_text){.id = 2, .rank = 0, .head = ADD, .args = "[2]"}); // behind the first call
    start(w, 1);
    reads(w);
    assert_true(told(w, RECORD_GO));
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++)
        takes(w, i, len);
    worker_says(&w->f, &w->workers[0], worker_takes(&w->workers[0], "[2]"), "8");
    hears(w, "1 RESULT [7,7,7,7]");
    hears(w, "2 RESULT 8");
    assert_int_equal(w->f.router.n_calls, 0);
}

static void who_sends_on_is_refused_with_what_to_do(void **state)
{
    struct world *w = *state;
    struct call_pieces b = body_of(1, ADD, 16 * MIB);
    sends_rest(w, &b);
    hears_about(w, "1 ERROR LIMIT", "the client ignored HOLD: at most 4194304 bytes may wait here; stop at HOLD");
    hears_nothing(w);
    start(w, 1);
    reads(w);
    assert_in_range(quota_used(w->c.session->quota), 0, 1000);
}

static void what_is_whole_by_then_is_a_call_like_any_other(void **state)
{
    struct world *w = *state;
    struct call_pieces b = body_of(1, ADD, 2 * MIB);
    size_t len = b.len;
    sends_rest(w, &b);
    assert_true(told(w, RECORD_HOLD));
    start(w, 1);
    for (uint32_t i = 0; i < WORLD; i++)
        takes(w, i, len);
    hears(w, "1 RESULT [7,7,7,7]");
}

// The proxy looks up references in JSON. It therefore waits for all of it, or for more than 1 MiB.
static void what_needs_more_first_gets_it(void **state)
{
    struct world *w = *state;
    struct call_pieces b = body_of(1, ADD, 1000);
    size_t len = b.len;
    w->f.router.config.whole_json = MIB;
    sends_piece(w, &b, 100);
    assert_true(told(w, RECORD_HOLD));
    start(w, 1);
    assert_true(told(w, RECORD_GO));
    sends(w, (struct call_text){.id = 2, .rank = 0, .head = ADD, .args = "[2]"});
    sends_piece(w, &b, 100);
    assert_null(wire_next(&w->workers[0].wire));
    worker_hang_up(&w->f, &w->workers[3]); // so the call waits again
    sends_piece(w, &b, 100);
    worker_start(&w->f, &w->workers[3], 3, 2);
    hears_nothing(w);
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++)
        takes(w, i, len);
    assert_true(worker_takes(&w->workers[0], "[2]") != 0);
    hears(w, "1 RESULT [7,7,7,7]");
}

#define AT_ONCE "{\"method\":\"add\",\"whenNotReady\":\"Refuse\"}"

// The second call waits for the first one, and not for the group.
static void behind_a_call_that_is_still_arriving_nothing_is_refused_if_the_group_is_ready(void **state)
{
    struct world *w = *state;
    struct call_pieces b = body_of(1, ADD, 1000);
    size_t len = b.len;
    w->f.router.config.whole_json = MIB;
    sends_piece(w, &b, 100);
    assert_true(told(w, RECORD_HOLD));
    for (uint32_t i = 0; i < WORLD - 1; i++)
        worker_start(&w->f, &w->workers[i], i, 1);
    sends(w, (struct call_text){.id = 2, .rank = 0, .head = AT_ONCE, .args = "[2]"});
    hears_about(w, "2 ERROR UNAVAILABLE", "ml/llama is not ready: 3 of 4 ranks are connected, missing: 3");
    worker_start(&w->f, &w->workers[WORLD - 1], WORLD - 1, 1);
    assert_true(told(w, RECORD_GO));
    sends_group(w, 3, AT_ONCE, "[3]");
    sends_group(w, 4, "{\"method\":\"add\",\"attempt\":9,\"whenNotReady\":\"Refuse\"}", "[4]");
    hears_about(w, "4 ERROR UNAVAILABLE", "the call is for attempt 9 of ml/llama, but the group is at attempt 1");
    hears_nothing(w);
    sends_rest(w, &b);
    for (uint32_t i = 0; i < WORLD; i++) {
        takes(w, i, len);
        worker_says(&w->f, &w->workers[i], worker_takes(&w->workers[i], "[3]"), "8");
    }
    hears(w, "1 RESULT [7,7,7,7]");
    hears(w, "3 RESULT [8,8,8,8]");
}

static void its_end_comes_while_it_waits(void **state)
{
    struct world *w = *state;
    struct call_pieces b = body_of(1, "{\"method\":\"add\",\"timeoutMs\":50}", 2 * MIB);
    sends_piece(w, &b, MIB);
    fixture_pass(&w->f, 50);
    hears_about(w, "1 ERROR TIMEOUT", "ml/llama is not ready");
    sends_rest(w, &b); // the client has not heard the cancel yet
    hears_nothing(w);
    b = body_of(1, ADD, 2 * MIB);
    sends_piece(w, &b, MIB);
    client_cancel(&w->c, 1);
    hears_about(w, "1 ERROR CANCELED", "before it was sent to a rank");
    sends_rest(w, &b);
    b = body_of(1, ADD, 2 * MIB);
    sends_piece(w, &b, MIB);
    fixture_pass(&w->f, w->f.router.config.ready_wait_ms); // nothing waits for ever
    hears_about(w, "1 ERROR TIMEOUT", "ml/llama is not ready");
    sends_rest(w, &b);
    b = body_of(1, "{\"method\":\"add\",\"whenNotReady\":\"Refuse\"}", 2 * MIB);
    sends_piece(w, &b, MIB);
    hears_about(w, "1 ERROR UNAVAILABLE", "ml/llama is not ready");
    sends_rest(w, &b);
    hears_nothing(w);
    assert_int_equal(w->f.router.n_calls, 0);
    b = body_of(1, ADD, 2 * MIB);
    sends_piece(w, &b, MIB); // then its client disconnects, or its group is deleted
    fixture_group(&w->f, WORLD, 2, "it has failed");
    hears_about(w, "1 ERROR UNAVAILABLE", "ml/llama takes no calls: it has failed");
    free(b.bytes);
}

static void a_long_task_waits_for_a_slot(void **state)
{
    struct world *w = *state;
    uint32_t ids[WORLD];
    for (uint32_t i = 0; i < WORLD; i++)
        sends(w,
              (struct call_text){.id = 10 + i, .rank = RECORD_GROUP, .execute = RECORD_ANY, .head = ADD, .args = ""});
    for (uint32_t i = 0; i < WORLD; i++)
        assert_true((ids[i] = worker_takes(&w->workers[i], "")) != 0);
    struct call_pieces b = body_of(1, ADD, 8 * MIB);
    size_t len = b.len;
    b.execute = RECORD_ANY;
    sends_piece(w, &b, MIB);
    assert_true(told(w, RECORD_HOLD));
    worker_says(&w->f, &w->workers[2], ids[2], "7");
    free(wire_next(&w->c.wire)); // the answer
    assert_true(told(w, RECORD_GO));
    sends_rest(w, &b);
    takes(w, 2, len);
    hears(w, "1 RESULT 7");
}

int main(void)
{
#define PARKED_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_empty, world_teardown)
    const struct CMUnitTest tests[] = {
        PARKED_TEST(a_long_call_waits_for_its_group),
        PARKED_TEST(who_sends_on_is_refused_with_what_to_do),
        PARKED_TEST(what_is_whole_by_then_is_a_call_like_any_other),
        PARKED_TEST(what_needs_more_first_gets_it),
        PARKED_TEST(behind_a_call_that_is_still_arriving_nothing_is_refused_if_the_group_is_ready),
        PARKED_TEST(its_end_comes_while_it_waits),
        cmocka_unit_test_setup_teardown(a_long_task_waits_for_a_slot, setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
