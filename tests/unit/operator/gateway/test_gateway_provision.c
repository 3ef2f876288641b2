// SPDX-License-Identifier: Apache-2.0
// Clients that create and delete groups: the requests to the provisioner, and its answers.
#include "common/base/str.h"
#include "tests/unit/support/gateway_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define CREATE "{\"method\":\"group.create\"}"
#define CREATED "{\"name\":\"x\"}"

static struct gateway_fixture f;

static struct {
    struct buf log; // one line for each request to it
    provisioner_done_fn done[2];
    void *done_ctx[2];
    int n;
} provider;

static void note(const char *what, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    buf_printf(&provider.log, "%s %s %s {%s} %s %s\n", what, p->ns, p->who.name, p->who.subject,
               p->lifetime ? "session" : "none", p->args);
    assert_in_range(provider.n, 0, 1);
    provider.done[provider.n] = done;
    provider.done_ctx[provider.n++] = done_ctx;
}

static void create(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    (void)ctx;
    note("create", p, done, done_ctx);
}

static void delete (void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    (void)ctx;
    note("delete", p, done, done_ctx);
}

static void renew(void *ctx, const struct provision *p, provisioner_done_fn done, void *done_ctx)
{
    (void)ctx;
    note("renew", p, done, done_ctx);
}

static void ended(void *ctx, const void *lifetime, bool wanted)
{
    (void)ctx, (void)lifetime;
    buf_printf(&provider.log, "ended %s\n", wanted ? "wanted" : "done");
}

static const struct provisioner provisioner = {.create = create, .renew = renew, .remove = delete, .ended = ended};

static int setup(void **state)
{
    (void)state;
    provider.n = 0;
    provider.log = BUF_INIT(1 << 16);
    gateway_fixture_start(&f, &(struct gateway_config){.provisioner = &provisioner}, NULL);
    gateway_fixture_group(&f, 1, 1, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    gateway_fixture_stop(&f);
    buf_done(&provider.log);
    return 0;
}

static bool asked(const char *text)
{
    return strstr(buf_str(&provider.log), text) != NULL;
}

static void answer(int i, const char *json)
{
    provider.done[i](provider.done_ctx[i], json, strlen(json), &(struct err){0});
}

static void a_client_asks_and_is_answered(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, CREATE, "{\"workerGroup\":{}}");
    gateway_peer_call(&p, 2, "{\"method\":\"group.delete\"}", "{\"group\":\"y\"}");
    GATEWAY_UNTIL(&f, provider.n == 2);
    assert_string_equal(buf_str(&provider.log), "create ml alice {\"user\":\"alice\"} session {\"workerGroup\":{}}\n"
                                                "delete ml alice {\"user\":\"alice\"} session {\"group\":\"y\"}\n");
    struct err err = ERR_INIT;
    err_set(&err, ERR_FORBIDDEN, "not you");
    provider.done[1](provider.done_ctx[1], NULL, 0, &err);
    answer(0, CREATED);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - " CREATED));
    assert_true(gateway_peer_got(&p, "ERROR 2 - {\"code\":\"FORBIDDEN\",\"message\":\"not you\"}"));
    ws_client_close(p.client, 1000, "done");
    GATEWAY_UNTIL(&f, p.closed && asked("ended done"));
    gateway_peer_hang_up(&p);
}

static void an_id_is_in_use_until_then(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, CREATE, "{}");
    gateway_peer_call(&p, 1, "{\"method\":\"group.info\"}", "");
    GATEWAY_UNTIL(&f, p.closed);
    assert_int_equal(p.code, 1002);
    gateway_peer_hang_up(&p);
}

// The request is carried out all the same, and nobody waits for the answer.
static void a_client_may_be_gone_when_the_answer_comes(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, CREATE, "{}");
    GATEWAY_UNTIL(&f, provider.n == 1);
    gateway_peer_hang_up(&p);
    GATEWAY_UNTIL(&f, asked("ended wanted"));
    answer(0, CREATED);
}

static void the_gateway_may_end_before_the_answer(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, CREATE, "{}");
    GATEWAY_UNTIL(&f, provider.n == 1);
    gateway_peer_hang_up(&p);
}

// The replica stops. Its client has read the GOODBYE, goes to another replica, and needs its objects there.
static void a_client_that_moves_to_another_replica_comes_again(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_stop(f.gateway);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "GOODBYE"));
    ws_client_close(p.client, 1001, "the client has moved to another replica");
    GATEWAY_UNTIL(&f, p.closed && asked("ended wanted"));
    gateway_peer_hang_up(&p);
}

static void one_that_ends_meanwhile_does_not(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_stop(f.gateway);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "GOODBYE"));
    ws_client_close(p.client, 1000, "the client ends");
    GATEWAY_UNTIL(&f, p.closed && asked("ended done"));
    gateway_peer_hang_up(&p);
}

static void an_object_of_an_earlier_session_is_renewed(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, "{\"method\":\"group.renew\"}", "{\"group\":\"x\",\"uid\":\"u-1\"}");
    GATEWAY_UNTIL(&f, asked("renew ml alice {\"user\":\"alice\"} session {\"group\":\"x\",\"uid\":\"u-1\"}\n"));
    answer(0, "null");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "RESULT 1 - null"));
    gateway_peer_hang_up(&p);
}

static void without_a_cluster_it_is_refused(void **state)
{
    struct gateway_peer p;
    (void)state;
    teardown(NULL);
    gateway_fixture_start(&f, NULL, NULL);
    provider.log = BUF_INIT(1 << 16);
    gateway_fixture_group(&f, 1, 1, NULL);
    gateway_client(&p, &f);
    gateway_peer_call(&p, 1, CREATE, "{}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "ERROR 1 - {\"code\":\"INVALID\",\"message\":\"groups are not created"));
    gateway_peer_hang_up(&p);
}

static void by_json_rpc(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, "/v1/namespaces/ml", "alice", "cadre.v1.json");
    gateway_peer_text(
        &p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"group.create\",\"params\":{\"lifetime\":\"Session\"}}");
    GATEWAY_UNTIL(&f, asked("create ml alice {\"user\":\"alice\"} session {\"lifetime\":\"Session\"}\n"));
    answer(0, CREATED);
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":" CREATED "}"));
    gateway_peer_hang_up(&p);
}

// Two user names may differ only at their ends.
static void a_long_name_arrives_whole(void **state)
{
    struct gateway_peer p;
    char user[600] = "alice", line[700];
    (void)state;
    memset(user + 5, 'e', sizeof user - 7);
    snprintf(line, sizeof line, "create ml %s {", user);
    gateway_peer_dial(&p, &f, "/v1/namespaces/ml", user, "cadre.v1.json");
    gateway_peer_text(
        &p, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"group.create\",\"params\":{\"lifetime\":\"Session\"}}");
    GATEWAY_UNTIL(&f, strstr(buf_str(&provider.log), line));
    answer(0, CREATED);
    gateway_peer_hang_up(&p);
}

static void a_notification_is_done_and_not_answered(void **state)
{
    (void)state;
    struct gateway_peer p;
    gateway_peer_dial(&p, &f, "/v1/namespaces/ml", "alice", "cadre.v1.json");
    gateway_peer_text(&p, "{\"jsonrpc\":\"2.0\",\"method\":\"group.delete\",\"params\":{\"group\":\"y\"}}");
    GATEWAY_UNTIL(&f, asked("delete ml alice {\"user\":\"alice\"} session {\"group\":\"y\"}\n"));
    answer(0, "null"); // it was a notification, so nobody gets the answer
    gateway_peer_hang_up(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_asks_and_is_answered, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_is_in_use_until_then, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_may_be_gone_when_the_answer_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(the_gateway_may_end_before_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(a_client_that_moves_to_another_replica_comes_again, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_ends_meanwhile_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(an_object_of_an_earlier_session_is_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_cluster_it_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_name_arrives_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(by_json_rpc, setup, teardown),
        cmocka_unit_test_setup_teardown(a_notification_is_done_and_not_answered, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
