// SPDX-License-Identifier: Apache-2.0
// Clients at the gateway: their calls are answered, also while the gateway stops.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/operator/gateway/gateway_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELLO_BODY "{\"role\":\"controller\",\"version\":1}"

static void test_hello_and_welcome(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_group(&f, 2, 1, NULL);
    gateway_client(&p, &f);
    assert_string_equal(buf_str(&p.got),
                        "WELCOME 0 - {\"version\":1,\"group\":{\"name\":\"llama\",\"namespace\":\"ml\",\"uid\":"
                        "\"" GATEWAY_UID
                        "\",\"worldSize\":2,\"attempt\":1},\"maxBody\":2147483648,\"maxCalls\":4096}\n");
    assert_int_equal(gateway_fixture_counters(&f).clients, 1);
    ws_client_close(p.client, 1000, "done");
    GATEWAY_UNTIL(&f, p.closed && gateway_fixture_counters(&f).clients == 0);
    gateway_peer_hang_up(&p);
}

static void test_welcome_has_the_meshes_of_the_group(void **state)
{
    const struct mesh_dim dims[] = {{"pp", 2}, {"dp", 2}};
    const struct mesh mesh = {"train", dims, ARRAY_LEN(dims)};
    const struct group_facts facts = {.uid = GATEWAY_UID,
                                      .ns = "ml",
                                      .name = "llama",
                                      .world = 4,
                                      .attempt = 1,
                                      .oldest = 1,
                                      .meshes = &mesh,
                                      .n_meshes = 1};
    static const char meshes[] = "\"attempt\":1,\"meshes\":[{\"name\":\"train\",\"dims\":[{\"name\":\"pp\",\"size\":2},"
                                 "{\"name\":\"dp\",\"size\":2}]}]}";
    struct gateway_peer p, worker;
    (void)state;
    router_group_set(gateway_router(f.gateway), &facts);
    gateway_client(&p, &f);
    assert_true(gateway_peer_got(&p, meshes));
    gateway_worker(&worker, &f, 0, 1);
    assert_true(gateway_peer_got(&worker, meshes));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&worker);
}

// Each error is counted under its code. Unknown codes are counted together.
static void test_errors_are_counted_by_code(void **state)
{
    static const char *const codes[] = {"INVALID", "FAILED", "OTHER"};
    struct gateway_peer p, worker;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    gateway_client(&p, &f);
    worker.quiet = true;
    gateway_peer_call(&p, 1, "{", "");
    for (uint32_t i = 2; i <= 3; i++) {
        gateway_peer_call(&p, i, "{\"method\":\"echo\"}", "[1]");
        GATEWAY_UNTIL(&f, worker.last_call == i - 1);
        gateway_peer_send(&worker, RECORD_ERROR, i - 1, 0,
                          i == 2 ? "{\"code\":\"FAILED\",\"message\":\"m\"}" : "{\"code\":\"MINE\",\"message\":\"m\"}");
    }
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 1 ") && gateway_peer_got(&p, "ERROR 2 ") &&
                          gateway_peer_got(&p, "ERROR 3 "));
    struct gateway_counters c = gateway_fixture_counters(&f);
    for (unsigned i = 0; i < CALL_FAILURE_KINDS; i++) {
        bool expected = false;
        for (size_t k = 0; k < ARRAY_LEN(codes); k++)
            expected = expected || str_eq(call_failure_kind_name(i), codes[k]);
        assert_int_equal(c.errors[i], expected);
    }
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&worker);
}

// 2,000 answers of 37 kB. The peer reads none before it has sent all its calls.
static void test_answers_of_our_own_wait_only_up_to_a_mark(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_group(&f, 2000, 1, NULL);
    gateway_client(&p, &f);
    for (uint32_t i = 1; i <= 2000; i++)
        gateway_peer_call(&p, i, "{\"method\":\"group.info\"}", "");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, " 2000 - "));
    assert_true(gateway_peer_got(&p, "RESULT 1 - {\"namespace\":\"ml\""));
    assert_true(gateway_peer_got(&p, "\"code\":\"THROTTLED\",\"message\":\""));
    assert_true(gateway_peer_got(&p, "bytes of answers wait for this connection; read them"));
    gateway_peer_hang_up(&p);
}

// One message contains all calls. A namespace uses up its part of a turn, and the rest waits. A client that reads
// gets all answers.
static void test_expensive_requests_take_turns(void **state)
{
    enum { ASKED = 60 };
    struct gateway_peer p;
    (void)state;
    gateway_fixture_group(&f, 640000, 1, NULL);
    gateway_client(&p, &f);
    for (uint32_t id = 1; id <= ASKED; id++)
        gateway_peer_call(&p, id, "{\"method\":\"group.info\"}", "");
    for (uint32_t id = 1; id <= ASKED; id++) {
        char want[32];
        snprintf(want, sizeof want, "RESULT %u ", id);
        GATEWAY_UNTIL(&f, gateway_peer_got(&p, want) || gateway_peer_got(&p, "ERROR"));
    }
    assert_false(gateway_peer_got(&p, "ERROR"));
    gateway_peer_hang_up(&p);
}

static void test_calls(void **state)
{
    struct gateway_peer p, workers[2];
    (void)state;
    gateway_fixture_group(&f, 2, 1, NULL);
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[10]"); // it waits for the ranks
    for (uint32_t i = 0; i < 2; i++)
        gateway_worker(&workers[i], &f, i, 1);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - [{\"rank\":0,\"args\":[10]},{\"rank\":1,\"args\":[10]}]"));
    gateway_peer_call(&p, 2, "{\"method\":\"each\"}", "[[1],[2]]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 2 - [{\"rank\":0,\"args\":[1]},{\"rank\":1,\"args\":[2]}]"));
    gateway_peer_call(&p, 3, "{\"method\":\"group.info\"}", "");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "\"pod\":\"llama-1-0\",\"node\":\"n1\""));
    workers[1].quiet = true;
    gateway_peer_call(&p, 4, "{\"method\":\"echo\",\"timeoutMs\":2000}", "[10]"); // rank 0 answers in time
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 4 - {\"code\":\"TIMEOUT\""));
    assert_true(gateway_peer_got(&p, "no answer from rank 1"));
    GATEWAY_UNTIL(&f, gateway_peer_got(&workers[1], "CANCEL"));
    assert_int_equal(gateway_fixture_counters(&f).answers, 2);
    for (int i = 0; i < 2; i++)
        gateway_peer_hang_up(&workers[i]);
    gateway_peer_hang_up(&p);
}

// Sends a record of call 7, in a message of its own.
static void send_record(struct gateway_peer *p, enum record_type type, uint8_t flags, const char *body, size_t len)
{
    const struct record_header h = {
        .type = (uint8_t)type, .call = 7, .rank = RECORD_GROUP, .flags = flags, .len = (uint32_t)len};
    char bytes[128];
    struct err err = ERR_INIT;
    assert_true(len <= sizeof bytes - RECORD_HEADER_SIZE);
    record_header_encode(bytes, &h);
    memcpy(bytes + RECORD_HEADER_SIZE, body, len);
    assert_int_equal(ws_client_message(p->client, false, bytes, RECORD_HEADER_SIZE + len, &err), 0);
}

// The proxy reads such a body whole. It does not know the call before the body is complete.
static void test_a_call_that_is_canceled_half_way_in_is_answered(void **state)
{
    static const char part[] = "\x11\0\0\0{\"method\":\"echo\"}[1,2";
    struct gateway_peer worker, p;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    gateway_client(&p, &f);
    send_record(&p, RECORD_CALL, RECORD_MORE, part, sizeof part - 1);
    send_record(&p, RECORD_CANCEL, 0, "", 0);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 7 - {\"code\":\"CANCELED\",\"message\":\"the client canceled the "
                                           "call before all of it had arrived"));
    buf_reset(&p.got);
    send_record(&p, RECORD_CANCEL, 0, "", 0);                         // it was answered already
    send_record(&p, RECORD_CALL, RECORD_MORE, part, sizeof part - 1); // the id is free again
    send_record(&p, RECORD_CALL, 0, "]", 1);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 7 - [{\"rank\":0,\"args\":[1,2]}]"));
    assert_false(gateway_peer_got(&p, "ERROR"));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&worker);
}

static void test_lost_worker(void **state)
{
    struct gateway_peer p, workers[2];
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.exit_wait_ms = 20});
    gateway_fixture_group(&f, 2, 1, NULL);
    gateway_client(&p, &f);
    for (uint32_t i = 0; i < 2; i++)
        gateway_worker(&workers[i], &f, i, 1);
    workers[1].quiet = true;
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[10]");
    GATEWAY_UNTIL(&f, workers[1].last_call);
    gateway_peer_hang_up(&workers[1]);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 1 1 {\"code\":\"UNAVAILABLE\",\"message\":\"rank 1 of ml/llama (pod "
                                           "llama-1-0 on node n1) lost its connection while echo() was pending"));
    gateway_peer_call(&p, 2, "{\"method\":\"echo\",\"whenNotReady\":\"Refuse\"}", "[10]");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 2 - {\"code\":\"UNAVAILABLE\""));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&workers[0]);
}

static void test_json_websocket(void **state)
{
    struct gateway_peer p, worker;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    gateway_peer_text(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{\"method\":\"echo\","
                          "\"args\":[5]}}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[{\"rank\":0,\"args\":[5]}]}\n"));
    gateway_peer_text(&p, "nonsense");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "\"code\":-32700"));
    worker.quiet = true;
    gateway_peer_text(&p,
                      "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"group.call\",\"params\":{\"method\":\"echo\"}}");
    gateway_peer_text(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"group.info\",\"params\":{}}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "id \\\"a\\\" is in use"));
    gateway_peer_text(&p, "{\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"group.cancel\",\"params\":{\"id\":\"a\"}}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "\"code\":-32006"));
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 0);
    gateway_peer_hang_up(&worker);
}

// They are read in slices, in several turns of the loop.
static void test_long_json_results(void **state)
{
    enum { RESULT = 900 << 10, CALLS = 3 };
    struct gateway_peer p, worker;
    char *result = calloc(1, RESULT + 1);
    (void)state;
    memset(result, ' ', RESULT);
    result[RESULT - 1] = '7'; // the fixture keeps only the beginning of a result
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    for (int i = 0; i < CALLS; i++) {
        char text[128], want[32];
        snprintf(text, sizeof text,
                 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"group.call\",\"params\":{\"method\":\"echo\"}}", i);
        gateway_peer_text(&p, text);
        GATEWAY_UNTIL(&f, worker.n_calls == (uint32_t)i + 1);
        gateway_peer_send(&worker, RECORD_RESULT, worker.last_call, 0, result);
        snprintf(want, sizeof want, "\"id\":%d,\"result\":[ ", i);
        GATEWAY_UNTIL(&f, gateway_peer_got(&p, want));
    }
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 0);
    assert_int_equal(gateway_fixture_counters(&f).bytes_held, 0);
    gateway_peer_hang_up(&worker);
    free(result);
}

// It is read in slices, in several turns of the loop. The input after it waits, and other clients do not.
static void test_long_json_requests(void **state)
{
    enum { ARGS = 900 << 10 };
    static const char before[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{\"args\":[",
                      behind[] = "],\"method\":\"echo\"}}";
    struct gateway_peer p, q, worker;
    char *request = calloc(1, ARGS + sizeof before + sizeof behind);
    (void)state;
    memset(request, ' ', ARGS + sizeof before + sizeof behind - 2);
    memcpy(request, before, sizeof before - 1);
    memcpy(request + sizeof before - 1 + ARGS, behind, sizeof behind);
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", "cadre.v1.json");
    gateway_peer_dial(&q, &f, GROUP_PATH, "alice", "cadre.v1.json");
    GATEWAY_UNTIL(&f, p.opened && q.opened);
    gateway_peer_text(&p, request);
    gateway_peer_text(&p, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"group.nothing\"}");
    gateway_peer_text(&q, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"group.nothing\"}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "\"id\":2") && gateway_peer_got(&q, "\"id\":3"));
    GATEWAY_UNTIL(&f, worker.n_calls == 1);
    assert_in_range(worker.bytes, ARGS, ARGS + 200 + sizeof before);
    gateway_peer_send(&worker, RECORD_RESULT, worker.last_call, 0, "7");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "\"id\":1,\"result\":[7]"));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).clients == 0);
    assert_int_equal(gateway_fixture_counters(&f).bytes_held, 0);
    gateway_peer_hang_up(&worker);
    free(request);
}

static void test_json_with_late_authority(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, "/v1/namespaces/ml", "late", "cadre.v1.json");
    gateway_peer_text(&p, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\",\"params\":{\"group\":\"x\"}}");
    GATEWAY_UNTIL(&f, p.opened && f.late);
    f.late(f.late_ctx, &(struct client_user){.name = "late"}, 0, &(struct err){0});
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "there is no WorkerGroup ml/x"));
    gateway_peer_hang_up(&p);
    // The client offers both, and the server takes the first: texts. Those need the token with the upgrade.
    gateway_peer_dial(&p, &f, GROUP_PATH, NULL, "cadre.v1.json, cadre.v1");
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1008);
    assert_non_null(strstr(p.reason, "token is needed"));
    gateway_peer_hang_up(&p);
}

// Open calls end, and new ones are refused. Then all peers go, the clients first.
static void test_stop(void **state)
{
    struct gateway_peer p, q, idle, worker;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    gateway_client(&p, &f);
    gateway_client(&idle, &f);
    gateway_peer_dial(&q, &f, GROUP_PATH, "late", "cadre.v1.json");
    GATEWAY_UNTIL(&f, q.opened && f.late);
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[10]");
    GATEWAY_UNTIL(&f, worker.last_call);
    gateway_stop(f.gateway);
    GATEWAY_UNTIL(&f, q.closed && idle.closed);
    assert_int_equal(q.code, 1001);
    assert_int_equal(idle.code, 1001);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "GOODBYE 0 - {\"reason\":\"this operator is stopping\"}"));
    gateway_peer_call(&p, 2, "{\"method\":\"echo\"}", "[20]");
    GATEWAY_UNTIL(&f,
                  gateway_peer_got(&p, "ERROR 2 - {\"code\":\"UNAVAILABLE\",\"message\":\"this operator is stopping"));
    assert_false(p.closed || worker.closed || gateway_idle(f.gateway));
    gateway_peer_send(&worker, RECORD_RESULT, worker.last_call, 0, "11");
    GATEWAY_UNTIL(&f, p.closed && worker.closed && gateway_idle(f.gateway));
    assert_true(gateway_peer_got(&p, "RESULT 1 - [11]"));
    assert_int_equal(p.code, 1001);
    assert_int_equal(worker.code, 1001);
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);
    gateway_peer_hang_up(&idle);
    gateway_peer_hang_up(&worker);
}

// A client that sends a call at the moment of the GOODBYE has not read it yet. The time is long, so nothing depends on
// it.
static void test_calls_that_cross_the_goodbye(void **state)
{
    const struct gateway_config patient = {.drain_ms = 3600 * 1000, .settle_ms = 1800 * 1000};
    struct gateway_peer idle, text, worker;
    (void)state;
    gateway_fixture_restart(&f, &patient);
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    gateway_client(&idle, &f);
    gateway_peer_dial(&text, &f, GROUP_PATH, "alice", "cadre.v1.json");
    gateway_peer_text(&text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.info\"}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&text, "\"id\":1"));
    gateway_stop(f.gateway);
    GATEWAY_UNTIL(&f, gateway_peer_got(&idle, "GOODBYE 0 - "));
    gateway_peer_call(&idle, 1, "{\"method\":\"echo\"}", "[10]");
    gateway_peer_text(&text, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"group.info\"}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&idle, "RESULT 1 - ") && gateway_peer_got(&text, "\"id\":2"));
    assert_false(gateway_peer_got(&text, "stopping"));
    assert_false(idle.closed || text.closed || worker.closed);
    gateway_peer_hang_up(&idle); // the gateway does not wait for a client that has gone by itself
    gateway_peer_hang_up(&text);
    GATEWAY_UNTIL(&f, worker.closed && gateway_idle(f.gateway));
    assert_int_equal(worker.code, 1001);
    gateway_peer_hang_up(&worker);
}

// A GOODBYE before the WELCOME would not be an answer to a HELLO.
static void test_stop_while_somebody_gets_in(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, HELLO_BODY);
    GATEWAY_UNTIL(&f, p.opened);
    gateway_stop(f.gateway);
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1001);
    assert_string_equal(buf_str(&p.got), "");
    gateway_peer_hang_up(&p);
}

static void test_stop_does_not_wait_for_ever(void **state)
{
    struct gateway_peer p, text, worker;
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.drain_ms = 20});
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    gateway_client(&p, &f);
    gateway_peer_dial(&text, &f, GROUP_PATH, "alice", "cadre.v1.json");
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[10]");
    gateway_peer_text(&text,
                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.call\",\"params\":{\"method\":\"echo\"}}");
    GATEWAY_UNTIL(&f, worker.last_call == 2);
    gateway_stop(f.gateway);
    GATEWAY_UNTIL(&f, p.closed && text.closed && worker.closed && gateway_idle(f.gateway));
    assert_int_equal(p.code, 1001);
    assert_int_equal(text.code, 1001);
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&text);
    gateway_peer_hang_up(&worker);
}

static void test_end_without_a_word(void **state)
{
    struct gateway_peer p, q, worker;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_client(&p, &f);
    gateway_worker(&worker, &f, 0, 1);
    worker.quiet = true;
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[10]");
    gateway_peer_dial(&q, &f, GROUP_PATH, "late", NULL);
    GATEWAY_UNTIL(&f, worker.last_call && q.opened);
    gateway_free(TAKE_PTR(f.gateway)); // the sanitizer checks that all memory is free
    GATEWAY_UNTIL(&f, p.closed && q.closed && worker.closed);
    assert_int_equal(p.code, 1006);
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);
    gateway_peer_hang_up(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hello_and_welcome),
        TEST(test_welcome_has_the_meshes_of_the_group),
        TEST(test_errors_are_counted_by_code),
        TEST(test_answers_of_our_own_wait_only_up_to_a_mark),
        TEST(test_expensive_requests_take_turns),
        TEST(test_calls),
        TEST(test_a_call_that_is_canceled_half_way_in_is_answered),
        TEST(test_lost_worker),
        TEST(test_json_websocket),
        TEST(test_long_json_requests),
        TEST(test_long_json_results),
        TEST(test_json_with_late_authority),
        TEST(test_stop),
        TEST(test_calls_that_cross_the_goodbye),
        TEST(test_stop_while_somebody_gets_in),
        TEST(test_stop_does_not_wait_for_ever),
        TEST(test_end_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
