// SPDX-License-Identifier: Apache-2.0
// A replica reports to another one which peers it sees, over a websocket. Here both have the same gateway, so the
// report comes back to it as the report of another replica.
#include "operator/gateway/replica_reporter.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/identity/certificate.h"
#include "tests/unit/support/gateway_fixture.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define AGENT_HELLO "{\"role\":\"agent\",\"version\":1,\"groups\":[]}"

static struct gateway_fixture f;
static struct replica_reports *seen;
static struct replica_reporter *reporter;
static struct connected_peer peer;

static void on_agent(void *ctx, const char *pod_uid, const char *ns, const char *owner, bool of_placementgroup)
{
    (void)ctx, (void)pod_uid, (void)of_placementgroup;
    assert_string_equal(ns, "ml");
    assert_string_equal(owner, "llama");
}

static void on_ranks(void *ctx, const char *group_uid)
{
    (void)ctx;
    assert_string_equal(group_uid, GATEWAY_UID);
}

static void on_worker(void *ctx, const char *group_uid)
{
    (void)ctx;
    replica_reporter_group(reporter, group_uid);
}

static int setup(void **state)
{
    (void)state;
    seen = replica_reports_new(
        &(struct replica_reports_config){.clock = &clock_system, .agent = on_agent, .ranks = on_ranks});
    gateway_fixture_start(
        &f, &(struct gateway_config){.replica = "a", .instance = "1", .reports = seen, .worker = on_worker}, NULL);
    gateway_fixture_group(&f, 4, 1, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    replica_reporter_free(TAKE_PTR(reporter));
    gateway_fixture_stop(&f);
    replica_reports_free(seen);
    return 0;
}

static void look_out_to(const char *url, const char *ca_pem, const char *instance, const char *proof)
{
    struct err err = ERR_INIT;
    reporter = replica_reporter_new(&(struct replica_reporter_config){.loop = f.loop,
                                                                      .url = url,
                                                                      .ca_pem = ca_pem,
                                                                      .name = "b",
                                                                      .instance = instance,
                                                                      .proof = proof,
                                                                      .agents = f.agents,
                                                                      .router = gateway_router(f.gateway)},
                                    &err);
    assert_non_null(reporter);
}

static void look_out(const char *instance, const char *proof)
{
    char url[160];
    snprintf(url, sizeof url, "ws://%s", f.address);
    look_out_to(url, NULL, instance, proof);
}

static int32_t member(size_t rank)
{
    int32_t members[4] = {0};
    replica_reports_members(seen, GATEWAY_UID, members, 4);
    return members[rank];
}

static void agent(struct gateway_peer *p, const char *token)
{
    gateway_peer_dial(p, &f, "/v1/connect", token, NULL);
    gateway_peer_send(p, RECORD_HELLO, 0, RECORD_GROUP, AGENT_HELLO);
    GATEWAY_UNTIL(&f, gateway_peer_got(p, "WELCOME"));
}

static void another_replica_learns_who_was_there_and_what_changes(void **state)
{
    struct gateway_peer first, second, worker;
    (void)state;
    agent(&first, "pod llama-0-0 uid-0");
    gateway_worker(&worker, &f, 2, 1);
    look_out("2", "proof of b 2");
    GATEWAY_UNTIL(&f, replica_reports_agent(seen, "uid-0") && member(2) == 1);
    assert_string_equal(replica_reports_agent(seen, "uid-0"), "b");
    assert_int_equal(member(0), 0);
    assert_int_equal(replica_reports_connected(seen, &peer, 1), 1);
    agent(&second, "pod llama-1-0 uid-1");
    replica_reporter_agent(reporter, "uid-1");
    GATEWAY_UNTIL(&f, replica_reports_agent(seen, "uid-1"));
    gateway_peer_hang_up(&first);
    gateway_peer_hang_up(&worker);
    GATEWAY_UNTIL(&f, agents_count(f.agents) == 1);
    replica_reporter_agent(reporter, "uid-0");
    GATEWAY_UNTIL(&f, !replica_reports_agent(seen, "uid-0") && member(2) == 0);
    assert_string_equal(replica_reports_agent(seen, "uid-1"), "b");
    replica_reporter_free(TAKE_PTR(reporter));
    GATEWAY_UNTIL(&f, !replica_reports_agent(seen, "uid-1"));
    gateway_peer_hang_up(&second);
}

// As in a cluster: it uses a name, and the certificate of the install.
static void replicas_trust_each_other_by_the_authority_of_the_install(void **state)
{
    static const char *const names[] = {"localhost"};
    struct arena a = ARENA_INIT;
    struct certificate_pair ca, leaf;
    struct err err = ERR_INIT;
    struct gateway_peer p;
    (void)state;
    int64_t now = clock_wall_ms(&clock_system);
    assert_int_equal(certificate_make_authority(now, &a, &ca, &err), 0);
    assert_int_equal(certificate_make_leaf(&ca, (struct certificate_names){names, 1}, now, &a, &leaf, &err), 0);
    assert_int_equal(gateway_certificate(f.gateway, leaf.cert, leaf.key, ca.cert, &err), 0);
    int port = gateway_listen(f.gateway, "127.0.0.1:0", true, &err);
    assert_true(port > 0);
    agent(&p, "pod llama-0-0 uid-0");
    look_out_to(arena_printf(&a, "wss://localhost:%d", port), ca.cert, "2", "proof of b 2");
    GATEWAY_UNTIL(&f, replica_reports_agent(seen, "uid-0"));
    gateway_peer_hang_up(&p);
    arena_done(&a);
}

static void a_replica_that_finds_itself_tells_nothing(void **state)
{
    struct gateway_peer p;
    (void)state;
    agent(&p, "pod llama-0-0 uid-0");
    look_out("1", "proof of b 1");
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).opened == 2);
    replica_reporter_agent(reporter, "uid-0");
    for (int i = 0; i < 50; i++)
        loop_run_once(f.loop, 10);
    assert_null(replica_reports_agent(seen, "uid-0"));
    assert_int_equal(replica_reports_connected(seen, &peer, 1), 0);
    gateway_peer_hang_up(&p);
}

static void who_has_another_key_is_sent_away(void **state)
{
    (void)state;
    look_out("2", "proof of c 2");
    GATEWAY_UNTIL(&f, gateway_fixture_counters(&f).refused > 0);
    assert_int_equal(replica_reports_connected(seen, &peer, 1), 0);
}

static void a_replica_may_send_nothing_else(void **state)
{
    struct gateway_peer p;
    (void)state;
    gateway_peer_dial(&p, &f, "/v1/connect", NULL, NULL);
    gateway_peer_send(&p, RECORD_HELLO, 0, RECORD_GROUP,
                      "{\"role\":\"replica\",\"replica\":\"b\",\"instance\":\"2\",\"proof\":\"proof of b 2\"}");
    GATEWAY_UNTIL(&f, gateway_peer_got(&p, "WELCOME 0 - {\"version\":1,\"replica\":\"a\",\"instance\":\"1\","
                                           "\"heartbeatMs\":3000}"));
    gateway_peer_send(&p, RECORD_PREPARED, 0, RECORD_GROUP, "{}");
    gateway_peer_is_closed(&p, 1002, "a replica must not send PREPARED records");
    assert_int_equal(replica_reports_connected(seen, &peer, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(another_replica_learns_who_was_there_and_what_changes),
        TEST(replicas_trust_each_other_by_the_authority_of_the_install),
        TEST(a_replica_that_finds_itself_tells_nothing),
        TEST(who_has_another_key_is_sent_away),
        TEST(a_replica_may_send_nothing_else),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
