// SPDX-License-Identifier: Apache-2.0
// A group with agents, from its object to Ready and back, through the controller, the registry of agents and the
// router. Only the API server, the sockets and the pods are not real.
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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLD = 2 };

struct rank {
    char pod_uid[32];
    struct connected_agent *agent;
    int orders;
    uint8_t order; // the last order
    char body[2048];
    struct record_writer out;
    struct member *member;
};

static struct {
    struct controller_case c;
    struct agents *agents;
    struct router router;
    struct arena arena;
    int version;        // of the group
    const char *status; // JSON
    struct rank ranks[WORLD];
} t;

static const char *group_json(void)
{
    return arena_printf(&t.arena,
                        "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":\"u-g\",\"resourceVersion\":\"%d\","
                        "\"generation\":1},\"spec\":{\"replicas\":%d,\"workersPerReplica\":1,\"runtime\":\"Agent\","
                        "\"maxRestarts\":3,\"restartBackoff\":{\"initialSeconds\":0,\"maxSeconds\":0},\"worker\":{"
                        "\"module\":\"/m.so\",\"class\":\"M\"},\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\","
                        "\"image\":\"i\"}]}}}%s%s}",
                        ++t.version, WORLD, t.status ? ",\"status\":" : "", t.status ? t.status : "");
}

static void on_changed(void *ctx, const char *ns, const char *group)
{
    (void)ctx;
    group_controller_changed(t.c.controller, ns, group);
}

static int setup(void **state)
{
    static const struct router_config limits = {.total_bytes = 1 << 20,
                                                .session_bytes = 1 << 20,
                                                .high_mark = 1 << 20,
                                                .low_mark = 1 << 19,
                                                .total_calls = 10,
                                                .session_calls = 10,
                                                .member_calls = 10,
                                                .ready_wait_ms = 1000,
                                                .task_wait_ms = 1000,
                                                .exit_wait_ms = 1000};
    (void)state;
    memset(&t, 0, sizeof t);
    controller_case_init(&t.c);
    t.agents = agents_new(&(struct agents_config){.clock = loop_clock(t.c.loop), .changed = on_changed});
    struct router_config config = limits;
    config.clock = loop_clock(t.c.loop);
    router_init(&t.router, &config);
    router_group_set(&t.router, &(struct group_facts){.uid = "u-g", .ns = "ml", .name = "g", .world = WORLD});
    controller_case_start(&t.c, t.agents, &t.router);
    store_put_json(t.c.stores[KIND_WORKERGROUP], group_json());
    return 0;
}

static void member_ends(struct rank *r)
{
    if (!r->member)
        return;
    router_leave(&t.router, TAKE_PTR(r->member));
    record_writer_done(&r->out);
    group_controller_changed(t.c.controller, "ml", "g");
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < WORLD; i++) {
        member_ends(&t.ranks[i]);
        if (t.ranks[i].agent)
            agents_leave(t.agents, t.ranks[i].agent);
    }
    controller_case_stop(&t.c);
    while (router_changed(&t.router))
        ;
    router_done(&t.router);
    agents_free(t.agents);
    controller_case_done(&t.c);
    arena_done(&t.arena);
    return 0;
}

// The API server, with quick kubelets.

static int rank_of(const char *pod_name) // g-<rank>-<incarnation>
{
    return pod_name[2] - '0';
}

// The object of a request as the API server returns it: with a UID, and a pod is running.
static const char *created(const struct kube_request *r)
{
    static const char metadata[] = "\"metadata\":{", spec[] = "\"spec\":{";
    const char *name = strstr(r->body, "\"name\":\"") + strlen("\"name\":\"");
    int rank = r->kind == KIND_POD ? rank_of(name) : 0;
    const char *m = strstr(r->body, metadata) + strlen(metadata), *s = strstr(m, spec) + strlen(spec);
    return arena_printf(&t.arena,
                        "%.*s\"uid\":\"u-%.*s\",\"resourceVersion\":\"7\",\"creationTimestamp\":"
                        "\"2026-01-01T00:00:00Z\",%.*s\"nodeName\":\"n1\",%.*s,\"status\":{\"phase\":\"Running\","
                        "\"podIP\":\"10.0.0.%d\"}}",
                        (int)(m - r->body), r->body, (int)strcspn(name, "\""), name, (int)(s - m), m,
                        (int)strlen(s) - 1, s, rank + 1);
}

// A slice has no spec. It is enough that it exists.
static const char *published(void)
{
    return "{\"metadata\":{\"name\":\"g-ipv4-0\",\"namespace\":\"ml\",\"uid\":\"u-slice\",\"resourceVersion\":\"7\"}}";
}

static const char *patched(const struct kube_request *r)
{
    const char *status = strstr(r->body, "\"status\":{") + strlen("\"status\":");
    t.status = arena_strndup(&t.arena, status, strlen(status) - 1);
    return group_json();
}

static void answer(struct stub_call *call)
{
    const struct kube_request *r = &call->request;
    if (r->verb == VERB_DELETE)
        stub_answer(call, 404, "{}");
    else if (r->kind == KIND_EVENT)
        stub_answer(call, 201, "{}");
    else if (r->kind == KIND_ENDPOINTSLICE)
        stub_answer(call, 201, published());
    else if (r->verb == VERB_PATCH_MERGE)
        stub_answer(call, 200, patched(r));
    else if (r->dry_run)
        stub_answer(call, 201, r->body);
    else
        stub_answer(call, 201, created(r));
}

static void turn(void)
{
    loop_run_once(t.c.loop, 20);
    while (stub_waiting(t.c.client))
        answer(stub_next(t.c.client));
}

#define UNTIL(condition) TURN_UNTIL(turn(), condition, "")

static const struct workergroup_status *status(void)
{
    return &workergroup_of(store_get(t.c.stores[KIND_WORKERGROUP], "ml", "g"))->status;
}

static bool ready_is(const char *reason)
{
    const struct condition *c = condition_find(status()->conditions, status()->n_conditions, COND_READY);
    return c && str_eq(c->reason, reason);
}

// Agents and workers.

static int on_order(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    struct rank *r = owner;
    (void)err;
    assert_true(len < sizeof r->body);
    r->order = type;
    r->orders++;
    snprintf(r->body, sizeof r->body, "%s", body);
    return 0;
}

static void join(int rank)
{
    static const char hello[] = "{\"role\":\"agent\",\"version\":1,\"groups\":[]}";
    struct rank *r = &t.ranks[rank];
    struct err err = ERR_INIT;
    snprintf(r->pod_uid, sizeof r->pod_uid, "u-g-%d-0", rank);
    const struct agent_identity id = {
        .ns = "ml", .group = "g", .pod = "g", .pod_uid = r->pod_uid, .node = "n1", .group_uid = "u-g"};
    assert_int_equal(agents_join(t.agents, &id, hello, strlen(hello), on_order, r, &r->agent, &err), 0);
}

static void say(int rank, uint8_t type, const char *body)
{
    struct record r = {.h = {.type = type, .rank = RECORD_GROUP}, .body = body, .len = strlen(body)};
    struct err err = ERR_INIT;
    if (agents_record(t.agents, t.ranks[rank].agent, &r, &err) < 0)
        fail_msg("%s", err.msg);
}

static void worker_joins(uint32_t rank, uint32_t attempt)
{
    static const char hello[] = "{\"methods\":[]}";
    const struct member_identity id = {.group_uid = "u-g", .attempt = attempt, .rank = rank, .pod = "g", .node = "n1"};
    struct rank *r = &t.ranks[rank];
    struct err err = ERR_INIT;
    record_writer_init(&r->out, 1 << 20);
    if (router_join(&t.router, &id, hello, strlen(hello), &r->out, r, &r->member, &err) < 0)
        fail_msg("%s", err.msg);
    group_controller_changed(t.c.controller, "ml", "g");
}

static const char *ticket(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a)
{
    (void)ctx;
    return arena_printf(a, "ticket-of-%s-%d-%d", group_uid, attempt, rank);
}

static void set_up(void)
{
    char image[] = "cadre:1";
    group_controller_setup(
        t.c.controller, &(struct agent_setup){.image = image, .url = "wss://o:9443", .ca_pem = "CA", .ticket = ticket});
    memset(image, 'x', sizeof image - 1); // the controller has a copy
}

static bool all_have(uint8_t order)
{
    for (int i = 0; i < WORLD; i++)
        if (t.ranks[i].order != order)
            return false;
    return true;
}

static void prepared(int attempt)
{
    UNTIL(all_have(RECORD_PREPARE));
    for (int i = 0; i < WORLD; i++)
        say(i, RECORD_PREPARED, arena_printf(&t.arena, "{\"group\":\"u-g\",\"attempt\":%d}", attempt));
}

static void started(int attempt)
{
    UNTIL(all_have(RECORD_START));
    for (int i = 0; i < WORLD; i++)
        say(i, RECORD_STARTED,
            arena_printf(&t.arena, "{\"group\":\"u-g\",\"attempt\":%d,\"processes\":[{\"rank\":%d,\"attempt\":%d}]}",
                         attempt, i, attempt));
}

static void all_run(void)
{
    set_up();
    group_controller_start(t.c.controller);
    UNTIL(store_count(t.c.stores[KIND_POD]) == WORLD);
    for (int i = 0; i < WORLD; i++)
        join(i);
    prepared(1);
    started(1);
}

static void ready(void)
{
    all_run();
    for (uint32_t i = 0; i < WORLD; i++)
        worker_joins(i, 1);
    UNTIL(ready_is("Running"));
}

static void without_its_setup_a_group_under_agents_gets_no_pods(void **state)
{
    (void)state;
    group_controller_start(t.c.controller);
    UNTIL(status()->n_conditions > 0);
    assert_int_equal(store_count(t.c.stores[KIND_POD]), 0);
    set_up();
    UNTIL(store_count(t.c.stores[KIND_POD]) == WORLD);
}

static void pods_have_what_they_are_set_up_with(void **state)
{
    (void)state;
    set_up();
    group_controller_start(t.c.controller);
    const struct stub_call *call = stub_next(t.c.client);
    while (call->request.kind != KIND_POD) {
        answer(stub_next(t.c.client));
        call = stub_next(t.c.client);
    }
    assert_non_null(strstr(call->request.body, "\"image\":\"cadre:1\""));
    assert_non_null(strstr(call->request.body, "wss://o:9443"));
}

static void from_pods_to_ready(void **state)
{
    (void)state;
    ready();
    assert_non_null(strstr(t.ranks[1].body, "\"ticket\":\"ticket-of-u-g-1-1\""));
    assert_int_equal(status()->ready_workers, WORLD);
    assert_int_equal(t.ranks[0].orders, 2); // PREPARE and START
}

static void quiet(void)
{
    while (!stub_quiet(t.c.client))
        answer(stub_next(t.c.client));
}

static void a_module_is_ready_when_its_workers_take_calls(void **state)
{
    (void)state;
    all_run();
    worker_joins(0, 1);
    UNTIL(status()->n_conditions > 0);
    quiet();
    assert_false(ready_is("Running"));
    worker_joins(1, 1);
    UNTIL(ready_is("Running"));
}

static void a_process_that_ends_restarts_the_group_in_place(void **state)
{
    (void)state;
    ready();
    for (int i = 0; i < WORLD; i++)
        member_ends(&t.ranks[i]);
    say(1, RECORD_EXITED, "{\"group\":\"u-g\",\"attempt\":1,\"rank\":1,\"exitCode\":3,\"lastLines\":\"oh no\"}");
    UNTIL(status()->attempt == 2);
    assert_int_equal(status()->last_failure.rank, 1);
    assert_string_equal(status()->last_failure.message, "oh no");
    UNTIL(t.ranks[0].order != RECORD_START); // the agent gets a new order
    for (int i = 0; i < WORLD; i++)
        say(i, RECORD_STOPPED, "{\"group\":\"u-g\",\"attempt\":1}");
    prepared(2);
    started(2);
    for (uint32_t i = 0; i < WORLD; i++)
        worker_joins(i, 2);
    UNTIL(ready_is("Running"));
    assert_int_equal(status()->restarts, 1);
    assert_int_equal(store_count(t.c.stores[KIND_POD]), WORLD);
    assert_int_equal(status()->incarnation, 0);
}

static void what_is_known_of_an_agent_goes_with_its_pod(void **state)
{
    (void)state;
    struct agent_facts facts;
    ready();
    store_gone(t.c.stores[KIND_POD], "ml", "g-1-0");
    agents_facts(t.agents, "u-g-1-0", "u-g", &t.arena, &facts);
    assert_int_equal(facts.changed_ms, 0);
    assert_ptr_equal(agents_replaced(t.agents), &t.ranks[1]);
}

static double decisions(void)
{
    static const char name[] = "\ncontroller_runtime_reconcile_total{controller=\"workergroup\",result=\"success\"} ";
    struct buf text = BUF_INIT(1 << 20);
    assert_int_equal(metrics_write(t.c.metrics, &text), 0);
    const char *at = strstr(buf_str(&text), name);
    assert_non_null(at);
    double n = strtod(at + strlen(name), NULL);
    buf_done(&text);
    return n;
}

static void many_changes_at_a_time_are_one_decision(void **state)
{
    (void)state;
    ready();
    quiet();
    double before = decisions();
    for (int i = 0; i < 1000; i++)
        group_controller_changed(t.c.controller, "ml", "g");
    UNTIL(decisions() > before);
    quiet();
    assert_true(decisions() <= before + 2); // one of them may be for a status that waited
}

static void a_standby_that_is_told_of_changes_decides_nothing(void **state)
{
    (void)state;
    set_up();
    join(0);
    group_controller_changed(t.c.controller, "ml", "g");
    assert_true(stub_quiet(t.c.client));
    assert_true(group_controller_idle(t.c.controller));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(without_its_setup_a_group_under_agents_gets_no_pods),
        T(pods_have_what_they_are_set_up_with),
        T(from_pods_to_ready),
        T(a_module_is_ready_when_its_workers_take_calls),
        T(a_process_that_ends_restarts_the_group_in_place),
        T(what_is_known_of_an_agent_goes_with_its_pod),
        T(many_changes_at_a_time_are_one_decision),
        T(a_standby_that_is_told_of_changes_decides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
