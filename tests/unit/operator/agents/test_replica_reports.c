// SPDX-License-Identifier: Apache-2.0
#include "operator/agents/replica_reports.h"

#include "common/base/buf.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/unit/clock_fake.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static struct clock_fake fake;
static struct replica_reports *all;
static struct reporting_replica *one, *two;
static struct buf told;

static void on_agent(void *ctx, const char *pod_uid, const char *ns, const char *owner, bool of_placementgroup)
{
    (void)ctx;
    buf_printf(&told, "%s of %s/%s%s\n", pod_uid, ns, owner, of_placementgroup ? " (a PlacementGroup)" : "");
}

static void on_ranks(void *ctx, const char *group_uid)
{
    (void)ctx;
    buf_printf(&told, "ranks of %s\n", group_uid);
}

static unsigned joined;

static void on_joined(void *ctx)
{
    (void)ctx;
    joined++;
}

static struct reporting_replica *join(const char *name)
{
    struct reporting_replica *g = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(replica_reports_join(all, name, &g, &err), 0);
    return g;
}

static int setup(void **state)
{
    (void)state;
    clock_fake_init(&fake, 1000, 500 * 1000);
    told = BUF_INIT(1 << 20);
    joined = 0;
    all = replica_reports_new(&(struct replica_reports_config){
        .clock = &fake.clock, .agent = on_agent, .ranks = on_ranks, .joined = on_joined});
    one = join("one");
    two = join("two");
    return 0;
}

static void leave(struct reporting_replica **g)
{
    if (*g)
        replica_reports_leave(all, TAKE_PTR(*g));
}

static int teardown(void **state)
{
    (void)state;
    leave(&one);
    leave(&two);
    replica_reports_free(all);
    buf_done(&told);
    return 0;
}

static void hear(struct reporting_replica *g, const char *body)
{
    struct err err = ERR_INIT;
    if (replica_reports_take(all, g, body, strlen(body), &err) < 0)
        fail_msg("%s", err.msg);
}

static void is_told(const char *what)
{
    assert_string_equal(buf_str(&told), what);
    told.len = 0;
}

static void a_replica_that_connects_is_news(void **state)
{
    (void)state;
    assert_int_equal(joined, 2);
}

static void an_agent_is_seen_until_the_replica_says_that_it_has_gone(void **state)
{
    (void)state;
    assert_null(replica_reports_agent(all, "u1"));
    hear(one, "{\"whole\":true,\"agents\":[{\"pod\":\"u1\",\"namespace\":\"ml\",\"owner\":\"llama\"},"
              "{\"pod\":\"u2\",\"namespace\":\"ml\",\"owner\":\"pool\",\"shared\":true}]}");
    is_told("u1 of ml/llama\nu2 of ml/pool (a PlacementGroup)\n");
    assert_string_equal(replica_reports_agent(all, "u1"), "one");
    hear(one, "{\"agents\":[{\"pod\":\"u1\",\"gone\":true},{\"pod\":\"u7\",\"gone\":true}]}");
    is_told("u1 of ml/llama\n");
    assert_null(replica_reports_agent(all, "u1"));
    assert_string_equal(replica_reports_agent(all, "u2"), "one");
}

static void what_a_replica_said_goes_with_its_connection(void **state)
{
    (void)state;
    hear(one, "{\"agents\":[{\"pod\":\"u1\",\"namespace\":\"ml\",\"owner\":\"llama\"}],"
              "\"groups\":[{\"group\":\"g\",\"ranks\":[[1,0,3]]}]}");
    hear(two, "{\"agents\":[{\"pod\":\"u1\",\"namespace\":\"ml\",\"owner\":\"llama\"}]}");
    told.len = 0;
    leave(&one);
    is_told("u1 of ml/llama\nranks of g\n");
    assert_string_equal(replica_reports_agent(all, "u1"), "two");
    leave(&two);
    assert_null(replica_reports_agent(all, "u1"));
}

static void the_whole_replaces_all_that_was_said_before(void **state)
{
    int32_t members[2] = {0};
    (void)state;
    hear(one, "{\"agents\":[{\"pod\":\"u1\",\"namespace\":\"ml\",\"owner\":\"llama\"}],"
              "\"groups\":[{\"group\":\"g\",\"ranks\":[[1,0,1]]}]}");
    hear(one, "{\"whole\":true,\"agents\":[{\"pod\":\"u2\",\"namespace\":\"ml\",\"owner\":\"llama\"}]}");
    assert_null(replica_reports_agent(all, "u1"));
    assert_string_equal(replica_reports_agent(all, "u2"), "one");
    replica_reports_members(all, "g", members, 2);
    assert_int_equal(members[0], 0);
}

static void ranks_of_several_replicas_are_added_to_those_that_are_known(void **state)
{
    int32_t members[6] = {0, 9};
    static const int32_t wanted[6] = {1, 9, 0, 2, 2, 0};
    (void)state;
    hear(one, "{\"groups\":[{\"group\":\"g\",\"ranks\":[[1,0,1]]}]}");
    hear(two, "{\"groups\":[{\"group\":\"g\",\"ranks\":[[2,3,4],[2,6,2000000000]]}]}"); // about a group with more ranks
    replica_reports_members(all, "g", members, 6);
    assert_memory_equal(members, wanted, sizeof wanted);
    hear(two, "{\"groups\":[{\"group\":\"g\",\"ranks\":[]}]}");
    memset(members, 0, sizeof members);
    replica_reports_members(all, "g", members, 6);
    assert_int_equal(members[3], 0);
    assert_int_equal(members[1], 1);
}

static void a_replica_is_evidence_from_when_it_came(void **state)
{
    struct connected_peer w[3];
    (void)state;
    clock_fake_advance(&fake, 7000);
    replica_reports_alive(all, two);
    assert_int_equal(replica_reports_connected(all, w, 3), 2);
    assert_int_equal(w[0].since_ms, 500 * 1000);
    assert_int_equal(w[0].heard_ms, 500 * 1000);
    assert_int_equal(w[1].heard_ms, 507 * 1000);
    assert_int_equal(replica_reports_connected(all, w, 1), 1);
}

static void what_makes_no_sense_is_refused_and_changes_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "7",
                                      "[]",
                                      "{\"agents\":{}}",
                                      "{\"whole\":true,\"agents\":[{\"pod\":\"\"}]}",
                                      "{\"whole\":true,\"agents\":[{\"pod\":\"u\",\"namespace\":\"ml\"}]}",
                                      "{\"groups\":[{\"group\":\"g\"}]}",
                                      "{\"groups\":[{\"group\":\"g\",\"ranks\":[[1,2]]}]}",
                                      "{\"groups\":[{\"group\":\"g\",\"ranks\":[[0,0,1]]}]}",
                                      "{\"groups\":[{\"group\":\"g\",\"ranks\":[[1,3,2]]}]}",
                                      "{\"groups\":[{\"group\":\"g\",\"ranks\":[[1,-1,2]]}]}",
                                      "{\"groups\":[{\"group\":\"g\",\"ranks\":[[1,0,9999999999]]}]}"};
    (void)state;
    hear(one, "{\"agents\":[{\"pod\":\"u1\",\"namespace\":\"ml\",\"owner\":\"llama\"}]}");
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;
        assert_int_equal(replica_reports_take(all, one, bad[i], strlen(bad[i]), &err), ERR_INVALID);
        assert_non_null(strstr(err.msg, "REPORT"));
    }
    assert_string_equal(replica_reports_agent(all, "u1"), "one");
}

static int no_command(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    (void)owner, (void)type, (void)body, (void)len, (void)err;
    return 0;
}

static struct connected_agent *connect_here(struct agents *here, const char *pod_uid)
{
    static const char hello[] = "{\"role\":\"agent\",\"version\":1,\"groups\":[]}";
    const struct agent_identity id = {.ns = "ml", .group = "llama", .pod = "p", .pod_uid = pod_uid, .node = "n1"};
    struct connected_agent *g = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(agents_join(here, &id, hello, sizeof hello - 1, no_command, NULL, &g, &err), 0);
    return g;
}

static void who_sees_all_agents_of_here_and_one_more_sees_more(void **state)
{
    struct agents *here = agents_new(&(struct agents_config){.clock = &fake.clock});
    struct connected_agent *u1 = connect_here(here, "u1"), *u2;
    (void)state;
    assert_null(replica_reports_sees_more(all, here));
    hear(one, "{\"agents\":[{\"pod\":\"u1\",\"namespace\":\"ml\",\"owner\":\"llama\"}]}");
    assert_null(replica_reports_sees_more(all, here)); // it sees the same number
    hear(one, "{\"agents\":[{\"pod\":\"u3\",\"namespace\":\"ml\",\"owner\":\"llama\"}]}");
    assert_string_equal(replica_reports_sees_more(all, here), "one");
    u2 = connect_here(here, "u2");
    hear(one, "{\"agents\":[{\"pod\":\"u4\",\"namespace\":\"ml\",\"owner\":\"llama\"}]}");
    assert_null(replica_reports_sees_more(all, here)); // it sees other agents
    agents_leave(here, u1);
    agents_leave(here, u2);
    agents_free(here);
}

static void there_is_an_end_to_replicas(void **state)
{
    struct reporting_replica *more[REPLICA_REPORTS_MAX], *g;
    struct err err = ERR_INIT;
    (void)state;
    for (int i = 2; i < REPLICA_REPORTS_MAX; i++)
        more[i] = join("more");
    assert_int_equal(replica_reports_join(all, "too many", &g, &err), ERR_LIMIT);
    for (int i = 2; i < REPLICA_REPORTS_MAX; i++)
        replica_reports_leave(all, more[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_replica_that_connects_is_news),
        TEST(an_agent_is_seen_until_the_replica_says_that_it_has_gone),
        TEST(what_a_replica_said_goes_with_its_connection),
        TEST(the_whole_replaces_all_that_was_said_before),
        TEST(ranks_of_several_replicas_are_added_to_those_that_are_known),
        TEST(a_replica_is_evidence_from_when_it_came),
        TEST(what_makes_no_sense_is_refused_and_changes_nothing),
        TEST(who_sees_all_agents_of_here_and_one_more_sees_more),
        TEST(there_is_an_end_to_replicas),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
