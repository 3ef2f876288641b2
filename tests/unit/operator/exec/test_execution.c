// SPDX-License-Identifier: Apache-2.0
// How many requests one execution sends at a time, how it publishes endpoints, and what it tells agents.
// test_executor.c tests how it takes answers.
#include "operator/exec/executor.h"

#include "common/wire/record.h"
#include "operator/placement/room.h"
#include "tests/unit/operator/exec/executor_case.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { PODS = EXECUTION_IN_FLIGHT_MAX + 44 };

static struct executor_case c;

static struct {
    struct loop *loop;
    struct connected_agent *agent;
    int refuses;     // the code with which the agent's connection refuses
    uint8_t command; // the last command that the agent got
    char body[64];
} t;

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    executor_case_init(&c, t.loop, stub_client_new(t.loop),
                       "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":\"u-g\",\"resourceVersion\":\"5\"},"
                       "\"spec\":{\"replicas\":300}}",
                       "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u-n\",\"resourceVersion\":\"1\"},"
                       "\"status\":{\"allocatable\":{\"pods\":\"1000\"}}}");
    c.x.agents = agents_new(&(struct agents_config){.clock = loop_clock(t.loop)});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (t.agent)
        agents_leave(c.x.agents, t.agent);
    agents_free(c.x.agents);
    executor_case_done(&c);
    stub_client_free(c.x.client);
    loop_free(t.loop);
    return 0;
}

static void plan_pods(int n)
{
    for (int i = 0; i < n; i++)
        executor_case_plan_pod(&c, arena_printf(&c.arena, "g-%d-0", i), "{}", RESOURCE_PODS, STAGE_SECOND);
}

static void plan_status(int stage)
{
    plan_add(&c.plan, ACTION_STATUS, stage)->body = "{}";
}

static void plan_command(void)
{
    struct action *a = plan_add(&c.plan, ACTION_COMMAND, STAGE_SECOND);
    a->name = "g-0-0";
    a->uid = "u-pod";
    a->command = RECORD_PREPARE;
    a->attempt = 3;
    a->body = "{\"attempt\":3}";
}

static int pods_counted(void)
{
    return (int)(room_used(cluster_room(c.x.cluster, "n1"), RESOURCE_PODS) / 1000);
}

static int send_to_agent(void *owner, uint8_t type, const char *body, size_t len, struct err *err)
{
    (void)owner;
    if (t.refuses)
        return err_set(err, t.refuses, "it does not read");
    t.command = type;
    snprintf(t.body, sizeof t.body, "%.*s", (int)len, body);
    return 0;
}

static void connect_agent(void)
{
    static const char hello[] = "{\"role\":\"agent\",\"version\":1}";
    struct err err = ERR_INIT;
    const struct agent_identity id = {.ns = "ml", .group = "g", .pod = "g-0-0", .pod_uid = "u-pod", .node = "n1"};
    assert_int_equal(agents_join(c.x.agents, &id, hello, strlen(hello), send_to_agent, NULL, &t.agent, &err), 0);
}

static void a_big_gang_is_asked_for_bit_by_bit(void **state)
{
    (void)state;
    plan_pods(PODS);
    plan_status(STAGE_THIRD);
    executor_case_start(&c);
    assert_int_equal(stub_waiting(c.x.client), EXECUTION_IN_FLIGHT_MAX);
    stub_answer(stub_next(c.x.client), 200, "{}");
    assert_int_equal(stub_waiting(c.x.client), EXECUTION_IN_FLIGHT_MAX);
    for (int i = 1; i < PODS; i++) {
        assert_int_equal(stub_next(c.x.client)->request.kind, KIND_POD); // the status waits for all of them
        stub_answer(stub_next(c.x.client), 200, "{}");
    }
    assert_int_equal(stub_waiting(c.x.client), 1);
    assert_int_equal(c.done, 0);
    stub_answer(stub_next(c.x.client), 200, "{}");
    assert_int_equal(c.done, 1);
}

// Otherwise another gang would be planned into that room.
static void pods_whose_turn_comes_later_have_their_room_from_the_beginning(void **state)
{
    (void)state;
    plan_pods(PODS);
    executor_case_start(&c);
    assert_int_equal(pods_counted(), PODS);
    while (!c.done)
        stub_answer(stub_next(c.x.client), 200, "{}");
    assert_int_equal(pods_counted(), PODS);
}

static void after_an_error_nothing_more_is_begun_and_the_room_is_given_back(void **state)
{
    (void)state;
    int answered = 0;
    plan_pods(PODS);
    executor_case_start(&c);
    stub_fail(stub_next(c.x.client), ERR_INTERNAL, "disk full");
    for (; !c.done; answered++)
        stub_answer(stub_next(c.x.client), 200, "{}");
    assert_int_equal(answered, EXECUTION_IN_FLIGHT_MAX - 1);
    assert_int_equal(c.err.code, ERR_INTERNAL);
    assert_int_equal(pods_counted(), answered);
}

static void start_slice(enum action_kind kind)
{
    struct action *a = plan_add(&c.plan, kind, STAGE_SECOND);
    a->name = "g-ipv4-0";
    a->body = "{\"endpoints\":[]}";
    executor_case_start(&c);
}

#define SLICE_OF(owner, version)                                                                                     \
    "{\"metadata\":{\"name\":\"g-ipv4-0\",\"namespace\":\"ml\",\"uid\":\"u-e\",\"resourceVersion\":\"" version       \
    "\",\"ownerReferences\":[{\"kind\":\"WorkerGroup\",\"name\":\"g\",\"uid\":\"" owner "\",\"controller\":true}]}," \
    "\"endpoints\":[{\"addresses\":[\"10.0.0.1\"]}]}"

static const struct endpointslice *slice(void)
{
    return endpointslice_of(store_get(c.stores[KIND_ENDPOINTSLICE], "ml", "g-ipv4-0"));
}

static void endpoints_are_known_as_they_were_written(void **state)
{
    (void)state;
    start_slice(ACTION_CREATE_SLICE);
    const struct kube_request *r = &stub_next(c.x.client)->request;
    assert_int_equal(r->verb, VERB_CREATE);
    assert_int_equal(r->kind, KIND_ENDPOINTSLICE);
    assert_string_equal(r->ns, "ml");
    stub_answer(stub_next(c.x.client), 201, SLICE_OF("u-g", "3"));
    assert_int_equal(c.done, 1);
    assert_int_equal(c.err.code, 0);
    assert_int_equal(slice()->n_endpoints, 1);
}

static void endpoints_are_changed_by_a_patch(void **state)
{
    (void)state;
    start_slice(ACTION_PATCH_SLICE);
    const struct kube_request *r = &stub_next(c.x.client)->request;
    assert_int_equal(r->verb, VERB_PATCH_MERGE);
    assert_string_equal(r->name, "g-ipv4-0");
    assert_null(r->subresource);
    stub_answer(stub_next(c.x.client), 200, SLICE_OF("u-g", "4"));
    assert_int_equal(c.err.code, 0);
    assert_string_equal(slice()->obj.meta.resource_version, "4");
}

// Somebody has changed or deleted it meanwhile: the operator decides again.
static void a_patch_of_what_is_no_more_is_an_error(void **state)
{
    (void)state;
    start_slice(ACTION_PATCH_SLICE);
    stub_fail(stub_next(c.x.client), ERR_CONFLICT, "changed");
    assert_int_equal(c.err.code, ERR_CONFLICT);
    assert_null(slice());
}

static void a_slice_from_before_a_crash_is_ours(void **state)
{
    (void)state;
    start_slice(ACTION_CREATE_SLICE);
    stub_fail(stub_next(c.x.client), ERR_EXISTS, "there");
    assert_int_equal(stub_next(c.x.client)->request.verb, VERB_GET);
    stub_answer(stub_next(c.x.client), 200, SLICE_OF("u-g", "3"));
    assert_int_equal(c.err.code, 0);
    assert_int_equal(slice()->n_endpoints, 1);
}

// The pods run, and the slice of a group of the same name that was just deleted disappears by itself. That is not a
// reason to give up pods.
static void a_slice_of_our_name_that_is_a_stranger_s_is_tried_again(void **state)
{
    (void)state;
    start_slice(ACTION_CREATE_SLICE);
    stub_fail(stub_next(c.x.client), ERR_EXISTS, "there");
    stub_answer(stub_next(c.x.client), 200, SLICE_OF("u-other", "3"));
    assert_int_equal(c.err.code, ERR_EXISTS);
    assert_string_equal(c.err.msg,
                        "an EndpointSlice ml/g-ipv4-0 exists that does not belong to this WorkerGroup: delete it");
    assert_null(c.observations.memory.refusal_reason);
    assert_null(slice());
}

// Two equal dry runs, as of two groups.
static void start_two_dry_runs(struct observations *second)
{
    struct arena arena = ARENA_INIT;
    struct plan plan;
    c.x.dryruns = dryruns_new(loop_clock(t.loop));
    executor_case_plan_dry_run(&c.plan, "{}", 42);
    executor_case_start(&c);
    plan_init(&plan, &arena);
    executor_case_plan_dry_run(&plan, "{}", 42);
    observations_init(second, 2);
    execution_start(&c.x, c.group, 0, &arena, &plan, second, executor_case_ended, &c);
}

static void end_two_dry_runs(struct observations *second)
{
    observations_done(second);
    dryruns_free(c.x.dryruns);
}

static void pods_that_are_alike_are_tried_once(void **state)
{
    (void)state;
    struct observations second;
    start_two_dry_runs(&second);
    assert_int_equal(stub_waiting(c.x.client), 1);
    assert_true(stub_next(c.x.client)->request.dry_run);
    stub_answer(stub_next(c.x.client), 201, "{\"spec\":{\"containers\":[{\"name\":\"w\"}]}}");
    assert_int_equal(c.done, 2);
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_OK);
    assert_int_equal(second.memory.dry_run, DRY_RUN_OK);
    end_two_dry_runs(&second);
}

static void a_refusal_is_heard_by_each_for_itself(void **state)
{
    (void)state;
    struct observations second;
    start_two_dry_runs(&second);
    stub_fail(stub_next(c.x.client), ERR_INVALID, "a name is too long");
    assert_int_equal(c.done, 1);
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_REFUSED);
    assert_int_equal(stub_waiting(c.x.client), 1);
    stub_answer(stub_next(c.x.client), 201, "{\"spec\":{\"containers\":[{\"name\":\"w\"}]}}");
    assert_int_equal(c.done, 2);
    assert_int_equal(second.memory.dry_run, DRY_RUN_OK);
    end_two_dry_runs(&second);
}

// Any of the two answers may come first.
static void of_several_dry_runs_of_one_a_refusal_stays(void **state)
{
    (void)state;
    executor_case_plan_dry_run(&c.plan, "{}", 42);
    executor_case_plan_dry_run(&c.plan, "{\"further\":1}", 43)->further = true;
    executor_case_start(&c);
    assert_int_equal(stub_waiting(c.x.client), 2); // at the same time
    struct stub_call *first = stub_next(c.x.client), *further = CONTAINER_OF(first->link.next, struct stub_call, link);
    assert_non_null(strstr(further->request.body, "further"));
    stub_fail(further, ERR_INVALID, "too much");
    stub_answer(first, 201, "{\"spec\":{\"containers\":[{\"name\":\"w\"}]}}");
    assert_int_equal(c.err.code, 0);
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_REFUSED);
    assert_int_equal(c.observations.memory.dry_run_hash, 43);
}

static void agents_are_told(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct agent_facts facts;
    connect_agent();
    plan_command();
    executor_case_start(&c);
    assert_int_equal(c.done, 1);
    assert_int_equal(c.err.code, 0);
    assert_int_equal(t.command, RECORD_PREPARE);
    assert_string_equal(t.body, "{\"attempt\":3}");
    agents_facts(c.x.agents, "u-pod", "u-g", &a, &facts);
    assert_int_equal(facts.sent, RECORD_PREPARE);
    assert_int_equal(facts.sent_attempt, 3);
    arena_done(&a);
}

// The status of a new attempt is written before any agent hears of it.
static void agents_are_told_after_the_status_is_written(void **state)
{
    (void)state;
    connect_agent();
    plan_status(STAGE_FIRST);
    plan_command();
    executor_case_start(&c);
    assert_int_equal(t.command, 0);
    stub_answer(stub_next(c.x.client), 200, "{}");
    assert_int_equal(t.command, RECORD_PREPARE);
    assert_int_equal(c.done, 1);
}

static void an_agent_that_is_not_there_is_no_error(void **state)
{
    (void)state;
    plan_command();
    plan_status(STAGE_THIRD);
    executor_case_start(&c);
    stub_answer(stub_next(c.x.client), 200, "{}");
    assert_int_equal(c.done, 1);
    assert_int_equal(c.err.code, 0);
}

static void an_agent_that_does_not_read_is_one(void **state)
{
    (void)state;
    connect_agent();
    t.refuses = ERR_LIMIT;
    plan_command();
    plan_status(STAGE_THIRD);
    executor_case_start(&c);
    assert_int_equal(c.done, 1);
    assert_int_equal(c.err.code, ERR_LIMIT);
    assert_int_equal(stub_waiting(c.x.client), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_big_gang_is_asked_for_bit_by_bit),
        T(pods_whose_turn_comes_later_have_their_room_from_the_beginning),
        T(after_an_error_nothing_more_is_begun_and_the_room_is_given_back),
        T(endpoints_are_known_as_they_were_written),
        T(endpoints_are_changed_by_a_patch),
        T(a_patch_of_what_is_no_more_is_an_error),
        T(a_slice_from_before_a_crash_is_ours),
        T(a_slice_of_our_name_that_is_a_stranger_s_is_tried_again),
        T(pods_that_are_alike_are_tried_once),
        T(a_refusal_is_heard_by_each_for_itself),
        T(of_several_dry_runs_of_one_a_refusal_stays),
        T(agents_are_told),
        T(agents_are_told_after_the_status_is_written),
        T(an_agent_that_is_not_there_is_no_error),
        T(an_agent_that_does_not_read_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
