// SPDX-License-Identifier: Apache-2.0
// Which peers the gateway admits, what refused peers get, and how long a client stays.
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/operator/gateway/gateway_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define HELLO_BODY "{\"role\":\"controller\",\"version\":1}"

// Connects, and is refused before the 101 with this status, and with a message that contains the text.
static void assert_refused(const char *path, const char *token, const char *subprotocols, int status, const char *text)
{
    struct gateway_peer p;
    gateway_peer_dial(&p, &f, path, token, subprotocols);
    GATEWAY_UNTIL(&f, p.closed);
    assert_false(p.opened);
    assert_int_equal(p.err.http_status, status);
    if (!strstr(p.err.msg, text))
        fail_msg("\"%s\" does not say \"%s\"", p.err.msg, text);
    gateway_peer_hang_up(&p);
}

static void test_refused_at_the_upgrade(void **state)
{
    (void)state;
    assert_refused("/", "alice", NULL, 404, "this path does not exist");
    assert_refused("/v1/namespaces/", "alice", NULL, 404, "does not exist");
    assert_refused("/v1/namespaces/ml/pods/x", "alice", NULL, 404, "does not exist");
    assert_refused("/v1/namespaces/ml/workergroups/llama/x", "alice", NULL, 404, "does not exist");
    assert_refused("/v1/namespaces/M_L", "alice", NULL, 404, "does not exist");
    assert_refused("/v1/ca", "alice", NULL, 404, "GET");
    assert_refused(GROUP_PATH, "mallory", NULL, 401, "nobody's");
    assert_refused(GROUP_PATH, "bob", NULL, 403, "bob may not create workergroups/call in namespace ml");
    assert_refused(GROUP_PATH, NULL, "cadre.v1.json", 401, "token is needed");
    assert_refused("/v1/connect", NULL, "cadre.v1.json", 426, "cadre.v1");
    assert_refused(GROUP_PATH, "alice", "mqtt", 426, "offer the subprotocol cadre.v1 or cadre.v1.json");
    assert_int_equal(gateway_fixture_counters(&f).opened, 0);
    assert_int_equal(gateway_fixture_counters(&f).refused, 10);
}

static void test_token_in_hello(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, "/v1/namespaces/ml", NULL, NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP,
                      "{\"role\":\"controller\",\"version\":1,\"token\":\"alice\",\"group\":\"llama\"}");
    gateway_peer_call(&p, 1, "{\"method\":\"group.info\"}", "");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 1 - {\"code\":\"NOT_FOUND\",\"message\":\"there is no "
                                           "WorkerGroup ml/llama\""));
    gateway_peer_hang_up(&p);

    gateway_peer_dial(&p, &f, GROUP_PATH, NULL, NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, "{\"role\":\"controller\",\"version\":1,\"token\":\"bob\"}");
    gateway_peer_is_closed(&p, 1008, "ERROR 0 - {\"code\":\"FORBIDDEN\"");

    gateway_peer_dial(&p, &f, GROUP_PATH, NULL, NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, HELLO_BODY);
    gateway_peer_is_closed(&p, 1008, "ERROR 0 - {\"code\":\"UNAUTHORIZED\",\"message\":\"a token is needed");
}

static void refuse_hello(const char *path, const char *hello, unsigned code, const char *error)
{
    struct gateway_peer p;
    gateway_peer_dial(&p, &f, path, str_eq(path, "/v1/connect") ? NULL : "alice", NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, hello);
    gateway_peer_is_closed(&p, code, error);
}

static void test_wrong_hello(void **state)
{
    struct gateway_peer p;
    (void)state;
    refuse_hello(GROUP_PATH, "{", 1008, "ERROR 0 - {\"code\":\"INVALID\",\"message\":\"HELLO: ");
    refuse_hello(GROUP_PATH, "{}", 1008, "\\\"role\\\" must be");
    refuse_hello(GROUP_PATH, "{\"role\":\"controller\",\"version\":2}", 1008, "version 2 is not supported");
    refuse_hello(GROUP_PATH, "{\"role\":\"agent\"}", 1008, "agents and workers connect to /v1/connect");
    refuse_hello(GROUP_PATH, "{\"role\":\"controller\",\"namespace\":\"other\"}", 1008, "FORBIDDEN");
    refuse_hello(GROUP_PATH, "{\"role\":\"controller\",\"group\":\"other\"}", 1008, "FORBIDDEN");
    refuse_hello("/v1/connect", "{\"role\":\"controller\"}", 1008, "clients connect to /v1/namespaces/");
    refuse_hello("/v1/connect", "{\"role\":\"spy\"}", 1008, "role spy");
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", NULL);
    gateway_peer_call(&p, 1, "{\"method\":\"group.info\"}", "");
    gateway_peer_is_closed(&p, 1002, "the first record must be HELLO, not CALL");
}

static void test_late_authority(void **state)
{
    struct gateway_peer p, q;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, HELLO_BODY);
    gateway_peer_call(&p, 1, "{\"method\":\"group.info\"}", ""); // the call waits and is not lost
    GATEWAY_UNTIL(&f, p.opened && f.late);
    gateway_client(&q, &f); // others are admitted meanwhile
    assert_int_equal(p.got.len, 0);
    assert_int_equal(gateway_fixture_counters(&f).pending, 1);
    f.late(f.late_ctx, &(struct client_user){.name = "late"}, 0, &(struct err){0});
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - {\"namespace\":\"ml\",\"name\":\"llama\""));
    assert_true(str_starts(buf_str(&p.got), "WELCOME"));
    assert_int_equal(gateway_fixture_counters(&f).pending, 0);
    gateway_peer_hang_up(&p);
    gateway_peer_hang_up(&q);

    struct err err = ERR_INIT;
    err_set(&err, ERR_FORBIDDEN, "not you");
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    GATEWAY_UNTIL(&f, p.opened);
    f.late(f.late_ctx, &(struct client_user){.name = "late"}, 0, &err);
    gateway_peer_is_closed(&p, 1008, "ERROR 0 - {\"code\":\"FORBIDDEN\",\"message\":\"not you\"}");
}

static void test_canceled_with_the_connection(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    GATEWAY_UNTIL(&f, p.opened);
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, f.n_canceled == 1);
    assert_int_equal(gateway_fixture_counters(&f).pending, 0);
}

static void test_authority_that_never_answers(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.authorise_ms = 20});
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, HELLO_BODY);
    gateway_peer_is_closed(&p, 1013, "ERROR 0 - {\"code\":\"TIMEOUT\"");
    assert_int_equal(f.n_canceled, 1);
}

static void test_pending_is_bounded(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.max_pending = 1});
    gateway_peer_dial(&p, &f, GROUP_PATH, "late", NULL);
    GATEWAY_UNTIL(&f, p.opened);
    assert_refused(GROUP_PATH, "alice", NULL, 429, "try again");
    assert_int_equal(f.n_asked, 1);
    gateway_peer_hang_up(&p);
}

static void test_no_hello_in_time(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.hello_ms = 20});
    gateway_peer_dial(&p, &f, GROUP_PATH, "alice", NULL);
    gateway_peer_is_closed(&p, 1008, "no HELLO within 20 ms");
    gateway_peer_dial(&p, &f, "/v1/connect", NULL, NULL);
    gateway_peer_is_closed(&p, 1008, "no HELLO within 20 ms");
}

static void test_session_ends_with_the_right_of_its_client(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_fixture_restart(&f, &(struct gateway_config){.review_ms = 5});
    gateway_client(&p, &f);
    int asked = f.n_asked;
    f.client_code = ERR_UNAVAILABLE; // nobody can tell: the session stays
    GATEWAY_UNTIL(&f, f.n_asked >= asked + 3);
    assert_false(p.closed);
    f.client_code = ERR_FORBIDDEN;
    gateway_peer_is_closed(
        &p, 1008, "ERROR 0 - {\"code\":\"FORBIDDEN\",\"message\":\"this client may no longer call: alice is asked");
    f.client_code = 0;
    gateway_peer_dial(&p, &f, GROUP_PATH, NULL, NULL); // the token is in HELLO
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, "{\"role\":\"controller\",\"version\":1,\"token\":\"alice\"}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    f.client_code = ERR_UNAUTHORIZED; // the account of the client is gone
    gateway_peer_is_closed(&p, 4401, "ERROR 0 - {\"code\":\"UNAUTHORIZED\"");
}

static void test_session_ends_with_its_token(void **state)
{
    struct gateway_peer p, q, worker;
    (void)state;
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_worker(&worker, &f, 0, 1);
    gateway_client(&q, &f);
    gateway_peer_dial(&p, &f, GROUP_PATH, "short", NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP, HELLO_BODY);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME"));
    gateway_peer_is_closed(
        &p, 4401, "ERROR 0 - {\"code\":\"UNAUTHORIZED\",\"message\":\"the token of this connection has expired");
    gateway_peer_call(&q, 1, "{\"method\":\"echo\"}", "[1]"); // the session of another client stays
    GATEWAY_UNTIL(&f, gateway_peer_got(&q, "RESULT 1 - [{\"rank\":0,\"args\":[1]}]"));
    gateway_peer_hang_up(&q);
    gateway_peer_hang_up(&worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_refused_at_the_upgrade),
        TEST(test_token_in_hello),
        TEST(test_wrong_hello),
        TEST(test_late_authority),
        TEST(test_canceled_with_the_connection),
        TEST(test_authority_that_never_answers),
        TEST(test_pending_is_bounded),
        TEST(test_no_hello_in_time),
        TEST(test_session_ends_with_the_right_of_its_client),
        TEST(test_session_ends_with_its_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
