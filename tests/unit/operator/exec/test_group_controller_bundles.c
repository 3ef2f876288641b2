// SPDX-License-Identifier: Apache-2.0
// Two groups on the bundles of one PlacementGroup, from their objects to the orders that the agent of its pod gets,
// through the controller and the registry of agents.
#include "tests/unit/operator/exec/controller_case.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/support/patience.h"
#include "tests/unit/support/store_gone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static struct {
    struct controller_case c;
    struct agents *agents;
    struct arena arena;
    struct connected_agent *agent;
    struct buf orders; // "PREPARE {...}\n"
    int version;
    const char *placementgroup; // the PlacementGroup of the groups that the test puts
} t;

static void put_group(const char *name, const char *bundles, const char *status)
{
    store_put_json(
        t.c.stores[KIND_WORKERGROUP],
        arena_printf(&t.arena,
                     "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"u-%s\",\"resourceVersion\":\"%d\","
                     "\"generation\":1},\"spec\":{\"replicas\":2,\"workersPerReplica\":1,\"runtime\":\"Agent\","
                     "\"placement\":{\"groups\":[{\"name\":\"%s\",\"bundles\":\"%s\"}]},\"worker\":{\"module\":"
                     "\"/m.so\"}}%s%s}",
                     name, name, ++t.version, t.placementgroup, bundles, status ? ",\"status\":" : "",
                     status ? status : ""));
}

static void put_placementgroup(void)
{
    store_put_json(
        t.c.stores[KIND_PLACEMENTGROUP],
        "{\"metadata\":{\"name\":\"pool\",\"namespace\":\"ml\",\"uid\":\"u-pool\",\"resourceVersion\":\"3\","
        "\"generation\":1},\"spec\":{\"bundles\":[{\"count\":4,\"resources\":{\"nvidia.com/gpu\":\"1\"}}]},\"status\":{"
        "\"conditions\":[{\"type\":\"Scheduled\",\"status\":\"True\",\"reason\":\"Bound\"},{\"type\":\"Ready\","
        "\"status\":\"True\",\"reason\":\"Running\"}]}}");
    store_put_json(
        t.c.stores[KIND_POD],
        "{\"metadata\":{\"name\":\"pool-plg-0-0\",\"namespace\":\"ml\",\"uid\":\"u-pod\",\"resourceVersion\":\"4\","
        "\"labels\":{\"app.kubernetes.io/managed-by\":\"cadre\",\"cadre.dev/group\":\"pool-plg\",\"cadre.dev/index\":"
        "\"0\",\"cadre.dev/incarnation\":\"0\"},\"annotations\":{\"cadre.dev/bundles\":\"0-3\"},\"ownerReferences\":[{"
        "\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"PlacementGroup\",\"name\":\"pool\",\"uid\":\"u-pool\","
        "\"controller\":true}]},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"w\"}]},\"status\":{\"phase\":"
        "\"Running\",\"podIP\":\"10.0.0.7\"}}");
}

static void put_service(void)
{
    store_put_json(
        t.c.stores[KIND_SERVICE],
        "{\"metadata\":{\"name\":\"pool-plg\",\"namespace\":\"ml\",\"uid\":\"u-service\",\"resourceVersion\":\"3\","
        "\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"PlacementGroup\",\"name\":\"pool\","
        "\"uid\":\"u-pool\",\"controller\":true}]}}");
}

static void on_placementgroup_changed(void *ctx, const char *ns, const char *placementgroup, const char *group_uid)
{
    (void)ctx;
    group_controller_placementgroup_changed(t.c.controller, ns, placementgroup, group_uid);
}

static const char *ticket(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a)
{
    (void)ctx;
    return arena_printf(a, "ticket-of-%s-%d-%d", group_uid, attempt, rank);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.placementgroup = "pool";
    controller_case_init(&t.c);
    t.orders = BUF_INIT(1 << 20);
    t.agents = agents_new(
        &(struct agents_config){.clock = loop_clock(t.c.loop), .placementgroup_changed = on_placementgroup_changed});
    controller_case_start(&t.c, t.agents, NULL);
    group_controller_setup(t.c.controller, &(struct agent_setup){.image = "i", .url = "wss://o", .ticket = ticket});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (t.agent)
        agents_leave(t.agents, t.agent);
    controller_case_stop(&t.c);
    agents_free(t.agents);
    controller_case_done(&t.c);
    arena_done(&t.arena);
    buf_done(&t.orders);
    return 0;
}

static void answer(struct stub_call *call)
{
    const struct kube_request *r = &call->request;
    if (r->verb == VERB_PATCH_MERGE) {
        const char *status = strstr(r->body, "\"status\":{") + strlen("\"status\":");
        const char *bundles = str_eq(r->name, "a") ? "0-1" : "2-3";
        put_group(r->name, bundles, arena_strndup(&t.arena, status, strlen(status) - 1));
        stub_fail(call, ERR_CONFLICT, "the watch was quicker");
    } else {
        stub_answer(call, 201, "{}");
    }
}

static void turn(void)
{
    loop_run_once(t.c.loop, 20);
    while (stub_waiting(t.c.client))
        answer(stub_next(t.c.client));
}

#define UNTIL(condition) TURN_UNTIL(turn(), condition, buf_str(&t.orders))

static int on_order(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    (void)owner, (void)len, (void)err;
    buf_printf(&t.orders, "%s %s\n", record_type_name(type), body);
    return 0;
}

static void join(const char *groups)
{
    const struct agent_identity id = {.ns = "ml",
                                      .group = "pool",
                                      .of_placementgroup = true,
                                      .pod = "pool-plg-0-0",
                                      .pod_uid = "u-pod",
                                      .node = "n1"};
    const char *hello = arena_printf(&t.arena, "{\"role\":\"agent\",\"version\":1,\"groups\":[%s]}", groups);
    struct err err = ERR_INIT;
    if (agents_join(t.agents, &id, hello, strlen(hello), on_order, NULL, &t.agent, &err) < 0)
        fail_msg("%s", err.msg);
}

static void say(uint8_t type, const char *body)
{
    struct record r = {.h = {.type = type, .rank = RECORD_GROUP}, .body = body, .len = strlen(body)};
    struct err err = ERR_INIT;
    if (agents_record(t.agents, t.agent, &r, &err) < 0)
        fail_msg("%s", err.msg);
}

static bool ordered(const char *what)
{
    return strstr(buf_str(&t.orders), what) != NULL;
}

static bool waits_for(const char *name, const char *reason)
{
    const struct object *o = store_get(t.c.stores[KIND_WORKERGROUP], "ml", name);
    const struct workergroup_status *s = &workergroup_of(o)->status;
    const struct condition *c = condition_find(s->conditions, s->n_conditions, COND_READY);
    return c && str_eq(c->reason, reason);
}

static void groups_wait_for_their_placementgroup_and_begin_with_it(void **state)
{
    (void)state;
    put_group("a", "0-1", NULL);
    put_group("b", "2-3", NULL);
    group_controller_start(t.c.controller);
    UNTIL(waits_for("a", REASON_PLACEMENT_NOT_FOUND) && waits_for("b", REASON_PLACEMENT_NOT_FOUND));
    put_placementgroup();
    UNTIL(waits_for("a", REASON_PENDING) && waits_for("b", REASON_PENDING));
    put_service(); // its controller creates it when it has a user
    UNTIL(waits_for("a", REASON_STARTING) && waits_for("b", REASON_STARTING));
    join("");
    UNTIL(ordered("PREPARE {\"group\":\"u-a\"") && ordered("PREPARE {\"group\":\"u-b\""));
    assert_true(ordered("\"masterPort\":29500") && ordered("\"masterPort\":29501")); // no status says so yet
    say(RECORD_PREPARED, "{\"group\":\"u-b\",\"attempt\":1}");
    UNTIL(ordered("START {\"group\":\"u-b\""));
    assert_true(ordered("{\"rank\":0,\"localRank\":0,\"ticket\":\"ticket-of-u-b-1-0\",\"gpus\":[2]}"));
    assert_false(ordered("START {\"group\":\"u-a\""));
}

static void a_group_that_is_deleted_is_stopped(void **state)
{
    (void)state;
    put_placementgroup();
    put_service();
    put_group("a", "0-1", NULL);
    put_group("b", "2-3", NULL);
    group_controller_start(t.c.controller);
    join("{\"group\":\"u-a\",\"attempt\":1,\"state\":\"Running\",\"processes\":[]},"
         "{\"group\":\"u-b\",\"attempt\":1,\"state\":\"Running\",\"processes\":[]}");
    turn();
    store_gone(t.c.stores[KIND_WORKERGROUP], "ml", "a");
    assert_true(ordered("STOP {\"group\":\"u-a\",\"attempt\":1,\"graceMs\":25000}"));
    assert_false(ordered("STOP {\"group\":\"u-b\""));
}

static bool refuses(const char *name, const char *reason)
{
    const struct workergroup_status *s = &workergroup_of(store_get(t.c.stores[KIND_WORKERGROUP], "ml", name))->status;
    const struct condition *c = condition_find(s->conditions, s->n_conditions, COND_ACCEPTED);
    return c && str_eq(c->reason, reason);
}

// Also if a replica begins to lead and knows only the status.
static void a_group_that_cannot_move_yet_runs_where_it_is(void **state)
{
    (void)state;
    t.placementgroup = "elsewhere";
    put_placementgroup();
    put_service();
    put_group(
        "a", "0-1",
        "{\"attempt\":1,\"worldSize\":2,\"replicas\":2,\"conditions\":[{\"type\":\"Scheduled\",\"status\":\"True\"},{"
        "\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Running\"}],\"revision\":{\"pods\":\"aa\",\"replicas\":2,"
        "\"workersPerReplica\":1,\"groups\":[{\"name\":\"pool\",\"bundles\":\"0-1\"}]}}");
    group_controller_start(t.c.controller);
    join("{\"group\":\"u-a\",\"attempt\":1,\"state\":\"Running\",\"processes\":[]}");
    UNTIL(refuses("a", REASON_PLACEMENT_NOT_FOUND));
    const struct workergroup *a = workergroup_of(store_get(t.c.stores[KIND_WORKERGROUP], "ml", "a"));
    assert_string_equal(group_controller_place(t.c.controller, a, 1, &t.arena)->obj.meta.name, "pool-plg-0-0");
    assert_true(group_controller_has_user(t.c.controller, "ml", "pool", "u-a"));
    assert_false(ordered("STOP"));
    store_gone(t.c.stores[KIND_WORKERGROUP], "ml", "a");
    assert_true(ordered("STOP {\"group\":\"u-a\",\"attempt\":1"));
}

// As after a restart of the operator.
static void a_group_runs_on_while_its_placementgroup_cannot_be_read(void **state)
{
    (void)state;
    const struct object_peek pool = {.ns = "ml", .name = "pool", .uid = "u-pool"};
    store_keep(t.c.stores[KIND_PLACEMENTGROUP], &pool);
    put_group(
        "a", "0-1",
        "{\"attempt\":1,\"worldSize\":2,\"replicas\":2,\"conditions\":[{\"type\":\"Scheduled\",\"status\":\"True\"},{"
        "\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Running\"}]}");
    group_controller_start(t.c.controller);
    join("{\"group\":\"u-a\",\"attempt\":1,\"state\":\"Running\",\"processes\":[]}");
    for (int i = 0; i < 5; i++)
        turn();
    assert_true(waits_for("a", REASON_RUNNING));
    store_deleted_unread(t.c.stores[KIND_PLACEMENTGROUP], &pool);
    group_controller_changed(t.c.controller, "ml", "a");
    UNTIL(!waits_for("a", REASON_RUNNING));
}

static void what_was_deleted_behind_a_leaders_back_is_stopped_too(void **state)
{
    (void)state;
    put_placementgroup();
    put_service();
    group_controller_start(t.c.controller);
    join("{\"group\":\"u-gone\",\"attempt\":3,\"state\":\"Running\",\"processes\":[]}");
    UNTIL(ordered("STOP {\"group\":\"u-gone\",\"attempt\":3,\"graceMs\":25000}"));
}

// A frozen replica may be in this state for a moment: the user may be a group of the next leader.
static void a_replica_that_may_not_decide_any_more_stops_nothing(void **state)
{
    (void)state;
    put_placementgroup();
    put_service();
    put_group("a", "0-1", NULL);
    group_controller_start(t.c.controller);
    join("{\"group\":\"u-a\",\"attempt\":1,\"state\":\"Running\",\"processes\":[]}");
    turn();
    stub_client_may_decide(t.c.client, false);
    store_gone(t.c.stores[KIND_WORKERGROUP], "ml", "a");
    assert_false(ordered("STOP"));
}

static void it_is_known_which_pod_has_a_rank(void **state)
{
    (void)state;
    put_placementgroup();
    put_service();
    put_group("b", "2-3", NULL);
    const struct workergroup *b = workergroup_of(store_get(t.c.stores[KIND_WORKERGROUP], "ml", "b"));
    assert_string_equal(group_controller_place(t.c.controller, b, 1, &t.arena)->obj.meta.name, "pool-plg-0-0");
    assert_null(group_controller_place(t.c.controller, b, 2, &t.arena));
    assert_true(group_controller_has_user(t.c.controller, "ml", "pool", "u-b"));
    assert_false(group_controller_has_user(t.c.controller, "ml", "pool", "u-a"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(groups_wait_for_their_placementgroup_and_begin_with_it),
        T(a_group_that_is_deleted_is_stopped),
        T(a_group_that_cannot_move_yet_runs_where_it_is),
        T(a_group_runs_on_while_its_placementgroup_cannot_be_read),
        T(what_was_deleted_behind_a_leaders_back_is_stopped_too),
        T(a_replica_that_may_not_decide_any_more_stops_nothing),
        T(it_is_known_which_pod_has_a_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
