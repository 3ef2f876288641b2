// SPDX-License-Identifier: Apache-2.0
// Agents at the gateway: the token of their pod, refused agents, commands to them and reports from them.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/operator/gateway/gateway_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define HELLO_BODY "{\"role\":\"agent\",\"version\":1,\"groups\":[]}"
#define POD_TOKEN "pod llama-0-0 uid-0"

static void dial(struct gateway_peer *p, const char *token)
{
    gateway_peer_dial(p, &f, "/v1/connect", token, NULL);
    gateway_peer_send(p, RECORD_HELLO, 0, RECORD_GROUP, HELLO_BODY);
}

static void test_welcome_and_reports(void **state)
{
    struct gateway_peer p;
    (void)state;
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME 0 - {\"version\":1,\"heartbeatMs\":3000}"));
    assert_int_equal(gateway_fixture_counters(&f).agents, 1);
    assert_int_equal(agents_count(f.agents), 1);
    assert_non_null(strstr(buf_str(&f.changes), "changed ml/llama"));
    gateway_peer_send(&p, RECORD_EXITED, 0, RECORD_GROUP,
                      "{\"group\":\"" GATEWAY_UID "\",\"attempt\":1,\"rank\":0,\"exitCode\":137,\"signal\":9}");
    GATEWAY_UNTIL(&f, strstr(buf_str(&f.changes), "exited " GATEWAY_UID " 1 0 137"));
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).agents == 0);
    assert_int_equal(agents_count(f.agents), 0);
}

// With the renewed token, it is admitted again.
static void test_the_session_ends_with_the_token(void **state)
{
    struct gateway_peer p;
    (void)state;
    f.pod_expires_ms = loop_wall_ms(f.loop) + 50;
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, p.closed);
    assert_true(gateway_peer_got(&p, "WELCOME"));
    assert_true(gateway_peer_got(
        &p, "ERROR 0 - {\"code\":\"UNAUTHORIZED\",\"message\":\"the token of this connection has expired"));
    assert_int_equal(p.code, 4401);
    assert_int_equal(gateway_fixture_counters(&f).agents, 0);
    gateway_peer_hang_up(&p);
    f.pod_expires_ms = loop_wall_ms(f.loop) + 3600 * 1000;
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    assert_int_equal(gateway_fixture_counters(&f).agents, 1);
    assert_int_equal(f.n_pod_tokens, 2); // once each
    gateway_peer_hang_up(&p);
}

static void test_commands(void **state)
{
    struct gateway_peer p;
    struct err err = ERR_INIT;
    (void)state;
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    assert_int_equal(agents_command(f.agents, "uid-0", GATEWAY_UID, 1, RECORD_PREPARE,
                                    "{\"group\":\"" GATEWAY_UID "\",\"attempt\":1}", &err),
                     0);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "PREPARE 0 - {\"group\":\"" GATEWAY_UID "\",\"attempt\":1}"));
    gateway_peer_hang_up(&p);
}

// Somebody may listen before the agent connects. An agent ignores records before its WELCOME.
static void test_listening_is_told_after_the_welcome(void **state)
{
    struct gateway_peer p;
    (void)state;
    agents_listen(f.agents, GATEWAY_UID, true);
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "OUTPUT 0 - {\"group\":\"" GATEWAY_UID "\",\"listen\":true}"));
    assert_true(strstr(buf_str(&p.got), "WELCOME") < strstr(buf_str(&p.got), "OUTPUT"));
    gateway_peer_hang_up(&p);
}

// The report of the agent about a rank's end is in the error of the calls that the rank had.
static void test_exit_code_reaches_the_caller(void **state)
{
    struct gateway_peer agent, worker, p;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    dial(&agent, POD_TOKEN);
    gateway_worker(&worker, &f, 0, 1);
    gateway_client(&p, &f);
    worker.quiet = true;
    gateway_peer_call(&p, 1, "{\"method\":\"echo\"}", "[1]");
    GATEWAY_UNTIL(&f, worker.last_call && gateway_peer_got(&agent, "WELCOME"));
    gateway_peer_hang_up(&worker);
    gateway_peer_send(&agent, RECORD_EXITED, 0, RECORD_GROUP,
                      "{\"group\":\"" GATEWAY_UID "\",\"attempt\":1,\"rank\":0,\"exitCode\":42}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 1 0 "));
    assert_true(gateway_peer_got(&p, "\"exitCode\":42"));
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&agent);
}

static void kill_rank(struct gateway_peer *p, uint32_t id, uint32_t rank)
{
    static const char body[] = "\x17\0\0\0{\"method\":\"group.kill\"}";
    const struct record_header h = {.type = RECORD_CALL, .call = id, .rank = rank};
    struct err err = ERR_INIT;
    assert_int_equal(ws_client_record_copy(p->client, &h, body, sizeof body - 1, &err), 0);
}

// The agent kills a process for a client. If no agent is connected here, the client gets an error at once.
static void test_kill(void **state)
{
    struct gateway_peer agent, worker, p;
    (void)state;
    gateway_fixture_group(&f, 2, 3, NULL);
    gateway_client(&p, &f);
    gateway_worker(&worker, &f, 0, 3);
    worker.quiet = true;
    kill_rank(&p, 1, 0);
    GATEWAY_UNTIL(&f,
                  gateway_peer_got(&p, "ERROR 1 - {\"code\":\"UNAVAILABLE\",\"message\":\"rank 0 of ml/llama cannot "
                                       "be killed: the agent of its pod is not connected to this replica"));
    dial(&agent, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&agent, "WELCOME"));
    kill_rank(&p, 2, 0);
    GATEWAY_UNTIL(&f, gateway_peer_got(&agent, "KILL 0 - {\"group\":\"" GATEWAY_UID "\",\"attempt\":3,\"rank\":0}"));
    gateway_peer_send(&agent, RECORD_REFUSED, 0, RECORD_GROUP,
                      "{\"command\":\"KILL\",\"group\":\"" GATEWAY_UID
                      "\",\"attempt\":3,\"rank\":0,\"code\":\"CONFLICT\",\"message\":\"not now\"}");
    GATEWAY_UNTIL(&f,
                  gateway_peer_got(&p, "ERROR 2 - {\"code\":\"UNAVAILABLE\",\"message\":\"rank 0 of ml/llama was not "
                                       "killed: not now"));
    buf_reset(&agent.got);
    kill_rank(&p, 3, 0);
    GATEWAY_UNTIL(&f, gateway_peer_got(&agent, "KILL"));
    gateway_peer_send(&agent, RECORD_EXITED, 0, RECORD_GROUP,
                      "{\"group\":\"" GATEWAY_UID "\",\"attempt\":3,\"rank\":0,\"exitCode\":137,\"signal\":9}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 3 - null"));
    assert_int_equal(worker.last_call, 0); // the process itself got no request
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&worker);
    gateway_peer_hang_up(&agent);
}

static void test_refused(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, "/v1/connect", "alice", NULL);
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.err.http_status, 401);
    gateway_peer_hang_up(&p);
    dial(&p, NULL);
    gateway_peer_is_closed(&p, 1008,
                           "ERROR 0 - {\"code\":\"UNAUTHORIZED\",\"message\":\"an agent shows its pod's token");
    f.pod_code = ERR_UNAVAILABLE; // the pod is not in the cache yet
    dial(&p, POD_TOKEN);
    gateway_peer_is_closed(&p, 1013, "ERROR 0 - {\"code\":\"UNAVAILABLE\",\"message\":\"pod ml/llama-0-0 ");
    f.pod_code = ERR_CONFLICT; // the pod was replaced
    dial(&p, POD_TOKEN);
    gateway_peer_is_closed(&p, 1008, "ERROR 0 - {\"code\":\"CONFLICT\"");
    f.pod_code = ERR_FORBIDDEN; // the pod is not ours
    dial(&p, POD_TOKEN);
    gateway_peer_is_closed(&p, 1008, "ERROR 0 - {\"code\":\"FORBIDDEN\"");
    assert_int_equal(agents_count(f.agents), 0);
}

static void test_newer_connection_takes_the_place(void **state)
{
    struct gateway_peer p, q, other;
    (void)state;
    dial(&p, POD_TOKEN);
    dial(&other, "pod llama-1-0 uid-1");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME") && gateway_peer_got(&other, "WELCOME"));
    dial(&q, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&q, "WELCOME"));
    gateway_peer_is_closed(&p, 1008, "ERROR 0 - {\"code\":\"CONFLICT\"");
    assert_false(q.closed || other.closed);
    assert_int_equal(agents_count(f.agents), 2);
    gateway_peer_hang_up(&q);
    gateway_peer_hang_up(&other);
}

static void test_pod_that_is_gone(void **state)
{
    struct gateway_peer p;
    (void)state;
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    agents_pod_gone(f.agents, "uid-0");
    gateway_peer_is_closed(&p, 1008, "the pod is gone");
}

static void test_silent_agent_is_lost(void **state)
{
    struct gateway_peer p;
    (void)state;
    f.heartbeat_ms = 10;
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    gateway_peer_is_closed(&p, 1008, "this agent sent nothing for 30 ms");
    assert_int_equal(agents_count(f.agents), 0);
}

static void test_broken_records(void **state)
{
    struct gateway_peer p, q;
    (void)state;
    dial(&q, "pod llama-1-0 uid-1");
    dial(&p, POD_TOKEN);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME") && gateway_peer_got(&q, "WELCOME"));
    gateway_peer_send(&p, RECORD_EXITED, 0, RECORD_GROUP, "{");
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1002);
    assert_false(q.closed);
    assert_int_equal(agents_count(f.agents), 1);
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_welcome_and_reports),
        TEST(test_the_session_ends_with_the_token),
        TEST(test_commands),
        TEST(test_listening_is_told_after_the_welcome),
        TEST(test_exit_code_reaches_the_caller),
        TEST(test_kill),
        TEST(test_refused),
        TEST(test_newer_connection_takes_the_place),
        TEST(test_pod_that_is_gone),
        TEST(test_silent_agent_is_lost),
        TEST(test_broken_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
