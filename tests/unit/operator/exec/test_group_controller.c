// SPDX-License-Identifier: Apache-2.0
// Events between decisions: the cluster changes while a plan is carried out.
#include "tests/unit/operator/exec/controller_case.h"

#include "common/base/str.h"
#include "tests/unit/support/store_gone.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static struct controller_case t;

static void put_group_of(const char *uid, int version, bool suspend)
{
    char json[1024];
    snprintf(
        json, sizeof json,
        "{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":\"%s\",\"resourceVersion\":\"%d\",\"generation\":"
        "1},\"spec\":{\"replicas\":2,\"workersPerReplica\":1,\"runtime\":\"Plain\",\"suspend\":%s,\"template\":{"
        "\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":\"i\"}]}}}}",
        uid, version, suspend ? "true" : "false");
    store_put_json(t.stores[KIND_WORKERGROUP], json);
}

static void put_group(int version, bool suspend)
{
    put_group_of("u-g", version, suspend);
}

static void put_pod(const char *name, int index)
{
    char json[1024];
    snprintf(
        json, sizeof json,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"u-%s\",\"resourceVersion\":\"2\",\"labels\":{"
        "\"cadre.dev/group\":\"g\",\"cadre.dev/index\":\"%d\",\"cadre.dev/attempt\":\"1\",\"cadre.dev/incarnation\":"
        "\"0\"},\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"name\":\"g\","
        "\"uid\":\"u-g\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"w\"}]}}",
        name, name, index);
    store_put_json(t.stores[KIND_POD], json);
}

static int setup(void **state)
{
    (void)state;
    controller_case_init(&t);
    controller_case_start(&t, NULL, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    controller_case_stop(&t);
    controller_case_done(&t);
    return 0;
}

#define DRY_RUN "{\"metadata\":{\"name\":\"g-dry-run\"},\"spec\":{\"containers\":[{\"name\":\"w\"}]}}"

// Returns the oldest request with this verb and kind. Requests before it succeed.
static struct stub_call *next(enum verb verb, enum kind kind)
{
    for (struct stub_call *call; (call = stub_next(t.client));) {
        if (call->request.verb == verb && call->request.kind == kind)
            return call;
        stub_answer(call, 200, call->request.dry_run ? DRY_RUN : "{}");
    }
    fail_msg("it is not asked");
    return NULL;
}

static void nothing_is_decided_before_the_start(void **state)
{
    (void)state;
    put_group(1, false);
    assert_true(stub_quiet(t.client));
    assert_true(group_controller_idle(t.controller));
    group_controller_start(t.controller);
    assert_non_null(next(VERB_CREATE, KIND_POD));
    assert_false(group_controller_idle(t.controller));
}

// The operator loses its Lease in the middle of a plan, and writes nothing more of it. When it is elected again, it
// begins again.
static void a_term_ends_in_the_middle_of_a_plan_and_another_one_begins(void **state)
{
    (void)state;
    put_group(1, false);
    group_controller_start(t.controller);
    assert_true(next(VERB_CREATE, KIND_POD)->request.decided);
    group_controller_stop(t.controller);
    kube_cancel_decided(t.client);
    assert_true(stub_quiet(t.client));
    assert_true(group_controller_idle(t.controller));
    put_group(2, false); // the controller sees it, and does nothing
    assert_true(stub_quiet(t.client));
    for (int term = 0; term < 3; term++) {
        group_controller_start(t.controller);
        assert_true(next(VERB_CREATE, KIND_POD)->request.decided);
        group_controller_stop(t.controller);
        kube_cancel_decided(t.client);
        assert_true(stub_quiet(t.client));
        assert_true(group_controller_idle(t.controller));
    }
}

static void what_failed_is_tried_at_once_when_the_server_is_back(void **state)
{
    (void)state;
    put_group(1, false);
    group_controller_start(t.controller);
    for (int i = 0; i < 20; i++) { // without it the last try would come after 43 minutes
        stub_fail(next(VERB_CREATE, KIND_POD), ERR_UNAVAILABLE, "down");
        while (!group_controller_idle(t.controller))
            stub_answer(stub_next(t.client), 200, "{}");
        group_controller_retry(t.controller, 1000);
    }
    assert_non_null(next(VERB_CREATE, KIND_POD));
}

static void the_template_is_tried_before_anything_is_created(void **state)
{
    (void)state;
    put_group(1, false);
    group_controller_start(t.controller);
    const struct kube_request *r = &next(VERB_CREATE, KIND_POD)->request;
    assert_true(r->dry_run);
    // A hash follows, so a user's pod g-dry-run is not in the way.
    assert_non_null(strstr(r->body, "\"name\":\"g-dry-run-"));
}

// The names of what a plan deletes must outlive the pods: here the pods go while the status is being written.
static void pods_that_go_while_the_status_is_written_are_still_deleted_by_name(void **state)
{
    (void)state;
    put_pod("g-0-0", 0);
    put_pod("g-1-0", 1);
    put_group(1, true);
    group_controller_start(t.controller);
    struct stub_call *status = next(VERB_PATCH_MERGE, KIND_WORKERGROUP);
    store_gone(t.stores[KIND_POD], "ml", "g-0-0");
    store_gone(t.stores[KIND_POD], "ml", "g-1-0");
    stub_answer(status, 200, "{}");
    struct stub_call *first = next(VERB_DELETE, KIND_POD);
    assert_string_equal(first->request.name, "g-0-0");
    stub_answer(first, 404, "{}");
    struct stub_call *second = next(VERB_DELETE, KIND_POD);
    assert_string_equal(second->request.name, "g-1-0");
    stub_answer(second, 404, "{}");
}

static void a_group_that_goes_while_its_plan_is_carried_out(void **state)
{
    (void)state;
    put_group(1, false);
    group_controller_start(t.controller);
    struct stub_call *dry_run = next(VERB_CREATE, KIND_POD);
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    stub_answer(dry_run, 422, "{\"message\":\"no\"}");
    while (!group_controller_idle(t.controller)) {
        struct stub_call *call = stub_next(t.client);
        assert_non_null(call);
        stub_answer(call, 404, "{}");
    }
    assert_true(stub_quiet(t.client));
}

// The operator does not use its observations of the first object for the second one. It asks again, and reports nothing
// about the first.
static void a_group_that_is_replaced_by_one_of_its_name_starts_from_nothing(void **state)
{
    (void)state;
    put_group_of("u-before", 1, false);
    group_controller_start(t.controller);
    struct stub_call *dry_run = next(VERB_CREATE, KIND_POD);
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    put_group_of("u-g", 5, false);
    stub_answer(dry_run, 422, "{\"message\":\"no\"}");
    assert_true(next(VERB_CREATE, KIND_POD)->request.dry_run);
}

// A standby may wait for years. It must not remember every group that existed in that time.
static void before_the_start_no_group_is_remembered(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(1 << 20);
    put_group(1, false);
    store_gone(t.stores[KIND_WORKERGROUP], "ml", "g");
    put_pod("g-0-0", 0);
    group_controller_start(t.controller);
    assert_int_equal(metrics_write(t.metrics, &text), 0);
    assert_non_null(strstr(buf_str(&text), "\nworkqueue_depth{controller=\"workergroup\",name=\"workergroup\"} 0\n"));
    buf_done(&text);
}

static void a_write_that_fails_is_tried_again(void **state)
{
    (void)state;
    put_group(1, false);
    group_controller_start(t.controller);
    stub_fail(next(VERB_CREATE, KIND_POD), ERR_INTERNAL, "disk full");
    assert_true(next(VERB_CREATE, KIND_POD)->request.dry_run);
}

// A new leader may have a watch that lags. Nothing is asked again before the watch delivers the news.
static void a_status_that_was_decided_from_an_old_view_waits_for_the_watch(void **state)
{
    (void)state;
    put_group(1, true);
    group_controller_start(t.controller);
    stub_fail(next(VERB_PATCH_MERGE, KIND_WORKERGROUP), ERR_CONFLICT, "the object has been modified");
    assert_true(stub_quiet(t.client));
    assert_true(group_controller_idle(t.controller));
    put_group(2, true);
    assert_non_null(strstr(next(VERB_PATCH_MERGE, KIND_WORKERGROUP)->request.body, "\"resourceVersion\":\"2\""));
}

static void stopped_it_ends_what_it_has_begun_and_begins_nothing(void **state)
{
    (void)state;
    put_group(1, false);
    group_controller_start(t.controller);
    struct stub_call *dry_run = next(VERB_CREATE, KIND_POD);
    group_controller_stop(t.controller);
    assert_false(group_controller_idle(t.controller));
    stub_answer(dry_run, 422, "{\"message\":\"no\"}");
    while (!group_controller_idle(t.controller)) {
        struct stub_call *call = stub_next(t.client);
        assert_non_null(call);
        stub_answer(call, 200, "{}");
    }
    put_group(2, true);
    assert_true(stub_quiet(t.client));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(nothing_is_decided_before_the_start),
        T(a_term_ends_in_the_middle_of_a_plan_and_another_one_begins),
        T(what_failed_is_tried_at_once_when_the_server_is_back),
        T(the_template_is_tried_before_anything_is_created),
        T(pods_that_go_while_the_status_is_written_are_still_deleted_by_name),
        T(a_group_that_goes_while_its_plan_is_carried_out),
        T(a_group_that_is_replaced_by_one_of_its_name_starts_from_nothing),
        T(before_the_start_no_group_is_remembered),
        T(a_write_that_fails_is_tried_again),
        T(a_status_that_was_decided_from_an_old_view_waits_for_the_watch),
        T(stopped_it_ends_what_it_has_begun_and_begins_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
