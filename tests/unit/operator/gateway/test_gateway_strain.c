// SPDX-License-Identifier: Apache-2.0
// Over real sockets: peers that connect and do nothing, answer twice or never, and bodies of a gigabyte. Each peer of
// such a call gets one clear answer, memory stays bounded, and others do not notice.
#include "common/base/mem.h"
#include "common/wire/record_stream.h"
#include "tests/unit/support/gateway_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECHO "{\"method\":\"echo\"}"
#define MIB ((size_t)1 << 20)

enum { PING_MS = 500, NEVER_MS = 3600 * 1000 };

static struct gateway_fixture f;
static struct gateway_peer good, workers[2];

static int setup_with(int64_t ping_ms)
{
    const struct gateway_config limits = {.ping_ms = ping_ms, .exit_wait_ms = 20};
    gateway_fixture_start(&f, &limits, NULL);
    gateway_fixture_group(&f, 2, 1, NULL);
    for (uint32_t i = 0; i < 2; i++)
        gateway_worker(&workers[i], &f, i, 1);
    gateway_client(&good, &f);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return setup_with(PING_MS);
}

// For tests in which no peer is silent. On a slow machine, a turn may take long.
static int setup_patient(void **state)
{
    (void)state;
    return setup_with(NEVER_MS);
}

static void call_rank(struct gateway_peer *p, uint32_t id, uint32_t rank, const char *head, const char *args)
{
    char body[256];
    struct err err = ERR_INIT;
    size_t head_len = strlen(head);
    record_call_prefix(body, (uint32_t)head_len);
    int n = snprintf(body + 4, sizeof body - 4, "%s%s", head, args);
    const struct record_header h = {.type = RECORD_CALL, .call = id, .rank = rank};
    assert_int_equal(ws_client_record_copy(p->client, &h, body, 4 + (size_t)n, &err), 0);
}

static void assert_good(uint32_t id)
{
    char want[64];
    call_rank(&good, id, 1, ECHO, "[\"there\"]");
    snprintf(want, sizeof want, "RESULT %u 1 {\"rank\":1,\"args\":[\"there\"]}", id);
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, want));
}

static int teardown(void **state)
{
    (void)state;
    assert_good(1000);
    gateway_peer_hang_up(&good);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 0);
    assert_int_equal(gateway_fixture_counters(&f).bytes_held, 0);
    for (uint32_t i = 0; i < 2; i++)
        gateway_peer_hang_up(&workers[i]);
    gateway_fixture_stop(&f);
    return 0;
}

static unsigned count(const struct gateway_peer *p, const char *text)
{
    unsigned n = 0;
    for (const char *at = buf_str((struct buf *)&p->got); (at = strstr(at, text)); at++)
        n++;
    return n;
}

// Its machine is gone, or it is stopped: it sends no FIN and no pong.
static void a_worker_that_vanishes_fails_its_calls(void **state)
{
    (void)state;
    workers[0].quiet = true;
    call_rank(&good, 1, 0, ECHO, "[1]");
    GATEWAY_UNTIL(&f, workers[0].last_call);
    ws_client_pause(workers[0].client);
    call_rank(&good, 2, 0, ECHO, "[2]"); // the call stays in the socket of the rank
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "ERROR 1 0 ") && gateway_peer_got(&good, "ERROR 2 0 "));
    assert_int_equal(count(&good,
                           "\"code\":\"UNAVAILABLE\",\"message\":\"rank 0 of ml/llama (pod llama-0-0 on node n1) "
                           "lost its connection (no answer to a ping) while echo() was pending; it may have run\""),
                     2);
    assert_int_equal(gateway_fixture_counters(&f).workers, 1);
}

static void a_client_that_vanishes_leaves_nothing_behind(void **state)
{
    struct gateway_peer gone;
    (void)state;
    workers[0].quiet = true;
    gateway_client(&gone, &f);
    call_rank(&gone, 1, 0, ECHO, "[1]");
    GATEWAY_UNTIL(&f, workers[0].last_call);
    ws_client_pause(gone.client);
    GATEWAY_UNTIL(&f, gateway_peer_got(&workers[0], "CANCEL")); // the rank that runs the call is told
    assert_int_equal(gateway_fixture_counters(&f).clients, 1);
    gateway_peer_send(&workers[0], RECORD_RESULT, workers[0].last_call, 0, "1"); // nobody gets this result
    workers[0].quiet = false;
    call_rank(&good, 1, 0, ECHO, "[2]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "RESULT 1 0 "));
    gateway_peer_hang_up(&gone);
}

static void a_worker_that_answers_twice_is_closed_and_its_caller_hears_once(void **state)
{
    struct gateway_peer other;
    (void)state;
    workers[0].quiet = true;
    gateway_client(&other, &f);
    call_rank(&good, 1, 0, ECHO, "[1]");
    GATEWAY_UNTIL(&f, workers[0].last_call);
    uint32_t first = workers[0].last_call;
    call_rank(&other, 1, 0, ECHO, "[2]");
    GATEWAY_UNTIL(&f, workers[0].last_call != first);
    gateway_peer_send(&workers[0], RECORD_RESULT, first, 0, "11");
    gateway_peer_send(&workers[0], RECORD_RESULT, first, 0, "12");
    GATEWAY_UNTIL(&f, workers[0].closed);
    assert_int_equal(workers[0].code, 1002);
    assert_true(gateway_peer_got(&workers[0], "rank 0 answers call"));
    GATEWAY_UNTIL(&f, gateway_peer_got(&other, "ERROR 1 0 {\"code\":\"UNAVAILABLE\"")); // its other calls
    assert_good(2);
    assert_int_equal(count(&good, "RESULT 1 0 11"), 1);
    assert_int_equal(count(&good, " 1 0 "), 1);
    gateway_peer_hang_up(&other);
}

static void a_worker_that_never_answers_costs_its_clients_their_deadlines(void **state)
{
    (void)state;
    workers[0].quiet = true;
    for (uint32_t id = 1; id <= 20; id++)
        call_rank(&good, id, 0, "{\"method\":\"echo\",\"timeoutMs\":50}", "[1]");
    GATEWAY_UNTIL(&f, count(&good, "\"code\":\"TIMEOUT\"") == 20);
    assert_int_equal(count(&good, "no answer from rank 0; it may have run"), 20);
    GATEWAY_UNTIL(&f, count(&workers[0], "CANCEL") == 20);
    for (uint32_t i = 0; i < 20; i++) // the proxy remembers them until then, so a late answer is not an error
        gateway_peer_send(&workers[0], RECORD_RESULT, workers[0].last_call - i, 0, "1");
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).bytes_held == 0);
    assert_good(21);
    assert_false(workers[0].closed);
    assert_int_equal(count(&good, "RESULT"), 1);
}

// Bodies of a gigabyte

struct flood {
    struct record_stream stream;
    struct blob *piece;
    size_t sent, len;
    uint64_t peak; // the most that the proxy held
};

// Sends as much as the socket takes. No more than some MiB wait here.
static void flood_step(struct flood *l, const struct record_header *h, struct gateway_peer *from, const char *head)
{
    struct err err = ERR_INIT;
    while (l->sent < l->len && (!l->sent || record_stream_waits(&l->stream) < 4 * MIB)) {
        struct blob *first = l->sent ? NULL : blob_copy(head, 4 + strlen(head + 4), NULL);
        const struct record_part parts[] = {{first, 0, first ? first->len : 0}, {l->piece, 0, MIB}};
        assert_int_equal(
            first ? record_stream_begin(&l->stream, &ws_client_records(from->client)->queue, h, parts, 2, &err)
                  : record_stream_add(&l->stream, parts + 1, 1, &err),
            0);
        blob_unref(first);
        l->sent += MIB;
        if (l->sent == l->len)
            record_stream_end(&l->stream);
    }
    loop_run_once(f.loop, 1);
    assert_false(good.closed || workers[0].closed);
    l->peak = MAX(l->peak, gateway_fixture_counters(&f).bytes_held);
}

static struct flood flood_new(size_t len)
{
    struct flood l = {.piece = blob_new(MIB, NULL), .len = len};
    memset(l.piece->data, ' ', MIB); // JSON may contain any number of blanks
    return l;
}

static void in_pieces(struct gateway_peer *p)
{
    record_reader_done(&p->reader);
    record_reader_init(&p->reader, &(struct record_reader_config){.max_body = (size_t)2 << 30});
}

static void a_gigabyte_passes_through_in_bounded_memory(void **state)
{
    static const char head[] = "\x11\0\0\0" ECHO;
    const struct record_header call = {.type = RECORD_CALL, .call = 1};
    struct flood l = flood_new((size_t)1 << 30);
    char head_and_nul[sizeof head];
    (void)state;
    memcpy(head_and_nul, head, sizeof head);
    workers[0].quiet = true;
    in_pieces(&workers[0]);
    size_t before = workers[0].bytes;
    while (workers[0].bytes - before < l.len / 8)
        flood_step(&l, &call, &good, head_and_nul);
    ws_client_pause(workers[0].client); // for a while, in which the rest must wait at its sender
    for (int i = 0; i < 50; i++)
        flood_step(&l, &call, &good, head_and_nul);
    assert_in_range(l.sent, l.len / 8, l.len / 2);
    ws_client_resume(workers[0].client);
    struct gateway_peer other; // it must not notice
    gateway_client(&other, &f);
    call_rank(&other, 1, 1, ECHO, "[1]");
    TURN_UNTIL(flood_step(&l, &call, &good, head_and_nul), gateway_peer_got(&other, "RESULT 1 1 "), "");
    while (workers[0].bytes - before < l.len + sizeof head - 1)
        flood_step(&l, &call, &good, head_and_nul);
    gateway_peer_send(&workers[0], RECORD_RESULT, workers[0].last_call, 0, "1");
    GATEWAY_UNTIL(&f, gateway_peer_got(&good, "RESULT 1 0 1"));
    assert_in_range(l.peak, MIB, 64 * MIB);
    blob_unref(l.piece);
    gateway_peer_hang_up(&other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_worker_that_vanishes_fails_its_calls),
        TEST(a_client_that_vanishes_leaves_nothing_behind),
#define PATIENT_TEST(name) cmocka_unit_test_setup_teardown(name, setup_patient, teardown)
        PATIENT_TEST(a_worker_that_answers_twice_is_closed_and_its_caller_hears_once),
        PATIENT_TEST(a_worker_that_never_answers_costs_its_clients_their_deadlines),
        PATIENT_TEST(a_gigabyte_passes_through_in_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
