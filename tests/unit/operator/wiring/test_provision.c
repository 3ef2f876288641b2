// SPDX-License-Identifier: Apache-2.0
// Groups that clients create and delete, and how objects of a session are renewed.
#include "operator/wiring/provision.h"

#include "common/base/buf.h"
#include "common/base/str.h"
#include "tests/unit/support/store_json.h"
#include "tests/unit/support/stub_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define GROUP "{\"metadata\":{\"name\":\"llama\"},\"spec\":{\"replicas\":2}}"
#define BOUND "{\"workerGroup\":" GROUP "}"
#define DETACHED "{\"workerGroup\":" GROUP ",\"lifetime\":\"Detached\"}"
#define YES "{\"status\":{\"allowed\":true}}"

static const char session, other;

static struct {
    struct loop *loop;
    struct kube_client *client;
    struct store *stores[KIND_COUNT];
    struct provisioning *provisioning;
    struct provisioner p;
    struct err err;
    char json[16 * 1024];
    int answers;
} t;

static void start(int64_t renew_ms)
{
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    t.client = stub_client_new(t.loop);
    stores_new(t.stores);
    t.provisioning = provision_new(t.loop, t.client, t.stores, renew_ms);
    t.p = provision_provisioner(t.provisioning);
}

static int setup(void **state)
{
    (void)state;
    start(3600 * 1000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    provision_free(t.provisioning);
    stub_client_cancel(t.client);
    stub_quiet(t.client); // dropped requests end in the next turn of the loop
    stub_client_free(t.client);
    stores_free(t.stores);
    loop_free(t.loop);
    return 0;
}

static void on_done(void *ctx, const char *json, size_t len, const struct err *err)
{
    (void)ctx;
    t.answers++;
    t.err = *err;
    snprintf(t.json, sizeof t.json, "%.*s", (int)len, json ? json : "");
}

static void ask(void (*what)(void *, const struct provision *, provisioner_done_fn, void *), const char *args,
                const void *lifetime)
{
    const struct provision p = {
        .ns = "ml", .who = {"anna", "\"user\":\"anna\",\"groups\":[\"devs\"]"}, .lifetime = lifetime, .args = args};
    what(t.p.ctx, &p, on_done, NULL);
}

static struct stub_call *next(enum verb verb, enum kind kind)
{
    struct stub_call *call;
    while (!(call = stub_next(t.client)))
        ;
    assert_int_equal(call->request.verb, verb);
    assert_int_equal(call->request.kind, kind);
    return call;
}

static void allow(const char *says)
{
    struct stub_call *call = next(VERB_CREATE, KIND_SUBJECT_ACCESS_REVIEW);
    if (!strstr(call->request.body, says))
        fail_msg("%s", call->request.body);
    stub_answer(call, 201, YES);
}

// Returns the object as the API server answers it: the request and what the server adds.
static void answer_created(struct stub_call *call)
{
    char json[2048];
    const char *rest = strstr(call->request.body, "\"name\"");
    snprintf(
        json, sizeof json,
        "{\"kind\":\"WorkerGroup\",\"metadata\":{\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"5\",%s",
        rest);
    stub_answer(call, 201, json);
}

static void create(const char *args, const void *lifetime)
{
    ask(t.p.create, args, lifetime);
    allow("\"verb\":\"create\"");
    answer_created(next(VERB_CREATE, KIND_WORKERGROUP));
    assert_int_equal(t.err.code, 0);
}

static void it_is_created_if_the_caller_could(void **state)
{
    (void)state;
    ask(t.p.create, DETACHED, NULL);
    allow("{\"user\":\"anna\",\"groups\":[\"devs\"],\"resourceAttributes\":{\"namespace\":\"ml\",\"verb\":\"create\","
          "\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"name\":\"llama\"}}");
    struct stub_call *call = next(VERB_CREATE, KIND_WORKERGROUP);
    assert_string_equal(call->request.ns, "ml");
    assert_non_null(strstr(call->request.body, "\"cadre.dev/created-by\":\"anna\""));
    answer_created(call);
    assert_string_equal(t.json, "{\"namespace\":\"ml\",\"name\":\"llama\",\"uid\":\"u-1\",\"lifetime\":\"Detached\"}");
    assert_non_null(store_get(t.stores[KIND_WORKERGROUP], "ml", "llama")); // the next call finds it
    assert_int_equal(t.answers, 1);
}

static void else_it_is_refused(void **state)
{
    (void)state;
    ask(t.p.create, DETACHED, NULL);
    stub_answer(next(VERB_CREATE, KIND_SUBJECT_ACCESS_REVIEW), 201, "{\"status\":{\"allowed\":false}}");
    assert_int_equal(t.err.code, ERR_FORBIDDEN);
    assert_non_null(strstr(t.err.msg, "user anna may not create WorkerGroups in namespace ml"));
    assert_true(stub_quiet(t.client));
}

static void what_the_api_server_says_is_passed_on(void **state)
{
    (void)state;
    ask(t.p.create, DETACHED, NULL);
    allow("create");
    stub_fail(next(VERB_CREATE, KIND_WORKERGROUP), ERR_INVALID, "spec.template is missing");
    assert_int_equal(t.err.code, ERR_INVALID);
    assert_string_equal(t.err.msg, "spec.template is missing");
    ask(t.p.create, DETACHED, NULL);
    stub_fail(next(VERB_CREATE, KIND_SUBJECT_ACCESS_REVIEW), ERR_TIMEOUT, "deadline passed");
    assert_int_equal(t.err.code, ERR_UNAVAILABLE);
}

static void it_is_renewed_while_the_session_lives(void **state)
{
    (void)state;
    teardown(NULL);
    start(1);
    create(BOUND, &session);
    assert_non_null(strstr(t.json, "\"lifetime\":\"Session\""));
    for (int i = 0; i < 3; i++) {
        struct stub_call *call = next(VERB_PATCH_MERGE, KIND_WORKERGROUP);
        assert_non_null(strstr(call->request.body, "{\"metadata\":{\"uid\":\"u-1\",\"annotations\":{\"cadre.dev/"));
        stub_answer(call, 200, "{}");
    }
    t.p.ended(t.p.ctx, &session, true);
    while (stub_waiting(t.client))
        stub_fail(stub_next(t.client), ERR_CANCELED, "canceled");
    // The session may come again. If not, the leader sees that nobody renews the group.
    assert_true(stub_quiet(t.client));
}

static void one_that_somebody_deleted_is_not_renewed(void **state)
{
    (void)state;
    teardown(NULL);
    start(1);
    create(BOUND, &session);
    stub_fail(next(VERB_PATCH_MERGE, KIND_WORKERGROUP), ERR_NOT_FOUND, "there is none");
    assert_true(stub_quiet(t.client));
}

static void another_one_with_its_name_is_not_renewed(void **state)
{
    (void)state;
    teardown(NULL);
    start(1);
    create(BOUND, &session);
    stub_answer(next(VERB_PATCH_MERGE, KIND_WORKERGROUP), 409,
                "{\"kind\":\"Status\",\"code\":409,\"reason\":\"Conflict\",\"message\":\"try again\"}");
    stub_answer(
        next(VERB_PATCH_MERGE, KIND_WORKERGROUP), 422,
        "{\"kind\":\"Status\",\"code\":422,\"reason\":\"Invalid\",\"message\":\"metadata.uid: field is immutable\"}");
    assert_true(stub_quiet(t.client));
}

static void one_that_is_asked_for_again_is_renewed_once_each_time(void **state)
{
    (void)state;
    create(BOUND, &session);
    for (int i = 0; i < 2; i++) {
        ask(t.p.create, BOUND, &session);
        allow("create");
        stub_fail(next(VERB_CREATE, KIND_WORKERGROUP), ERR_EXISTS, "it is there");
        stub_answer(next(VERB_PATCH_MERGE, KIND_WORKERGROUP), 200, "{}");
    }
    t.p.ended(t.p.ctx, &session, false);
    stub_answer(next(VERB_DELETE, KIND_WORKERGROUP), 200, "{}");
    assert_true(stub_quiet(t.client)); // one object, so one deletion
}

static void it_goes_when_the_session_says_goodbye(void **state)
{
    (void)state;
    create(BOUND, &session);
    t.p.ended(t.p.ctx, &other, false);
    assert_true(stub_quiet(t.client));
    t.p.ended(t.p.ctx, &session, false);
    struct stub_call *call = next(VERB_DELETE, KIND_WORKERGROUP);
    assert_string_equal(call->request.uid, "u-1");
    stub_answer(call, 200, "{}");
}

static void also_if_it_says_so_before_the_group_is_there(void **state)
{
    (void)state;
    ask(t.p.create, BOUND, &session);
    allow("create");
    t.p.ended(t.p.ctx, &session, false);
    answer_created(next(VERB_CREATE, KIND_WORKERGROUP));
    stub_answer(next(VERB_DELETE, KIND_WORKERGROUP), 200, "{}");
}

static void the_same_request_takes_it_over(void **state)
{
    (void)state;
    create(BOUND, &session);
    t.p.ended(t.p.ctx, &session, true);
    ask(t.p.create, BOUND, &other);
    allow("create");
    stub_fail(next(VERB_CREATE, KIND_WORKERGROUP), ERR_EXISTS, "it is there");
    assert_int_equal(t.err.code, 0);
    stub_answer(next(VERB_PATCH_MERGE, KIND_WORKERGROUP), 200, "{}");
    t.p.ended(t.p.ctx, &other, false);
    stub_answer(next(VERB_DELETE, KIND_WORKERGROUP), 200, "{}");
}

static void another_request_does_not(void **state)
{
    (void)state;
    create(DETACHED, NULL);
    ask(t.p.create, BOUND, &session);
    allow("create");
    stub_fail(next(VERB_CREATE, KIND_WORKERGROUP), ERR_EXISTS, "it is there");
    assert_int_equal(t.err.code, ERR_EXISTS);
    assert_non_null(strstr(t.err.msg, "WorkerGroup ml/llama exists already"));
}

static void its_client_renews_it_in_another_session(void **state)
{
    (void)state;
    create(BOUND, &session);
    t.p.ended(t.p.ctx, &session, true);
    ask(t.p.renew, "{\"group\":\"llama\",\"uid\":\"u-1\"}", &other);
    assert_string_equal(t.json, "null");
    stub_answer(next(VERB_PATCH_MERGE, KIND_WORKERGROUP), 200, "{}");
    t.p.ended(t.p.ctx, &other, false);
    stub_answer(next(VERB_DELETE, KIND_WORKERGROUP), 200, "{}");
}

static void refuses_to_renew(const char *args, const void *lifetime, enum err_code code, const char *message)
{
    ask(t.p.renew, args, lifetime);
    assert_int_equal(t.err.code, code);
    assert_string_equal(t.err.msg, message);
    assert_true(stub_quiet(t.client));
}

static void a_replica_that_is_starting_does_not_say_what_is_deleted(void **state)
{
    (void)state;
    refuses_to_renew("{\"group\":\"llama\",\"uid\":\"u-1\"}", &session, ERR_UNAVAILABLE,
                     "this replica is starting and has not read all workergroups yet");
}

// A replica may see an object late that another one has made.
#define NONE_HERE \
    "none with this UID is here: it has been deleted, or this replica does not know it yet; try again for 90 s"

static void nothing_else_is_renewed(void **state)
{
    (void)state;
    create(BOUND, &session);
    store_list_begin(t.stores[KIND_PLACEMENTGROUP]);
    store_list_swap(t.stores[KIND_PLACEMENTGROUP], "1");
    refuses_to_renew("{\"group\":\"llama\",\"uid\":\"u-2\"}", &other, ERR_NOT_FOUND,
                     "WorkerGroup ml/llama cannot be renewed: " NONE_HERE);
    refuses_to_renew("{\"placementGroup\":\"llama\",\"uid\":\"u-1\"}", &other, ERR_NOT_FOUND,
                     "PlacementGroup ml/llama cannot be renewed: " NONE_HERE);
    refuses_to_renew("{\"group\":\"llama\",\"uid\":\"u-1\"}", NULL, ERR_INVALID,
                     "WorkerGroup ml/llama cannot be renewed: a single request has no session: open a websocket");
    refuses_to_renew("{\"group\":\"llama\"}", &other, ERR_INVALID,
                     "group.renew needs {\"group\": the name of a WorkerGroup, \"uid\": its UID}, or the same with "
                     "\"placementGroup\"");
    const struct provision stranger = {.ns = "ml",
                                       .who = {"bob", "\"user\":\"bob\""},
                                       .lifetime = &other,
                                       .args = "{\"group\":\"llama\",\"uid\":\"u-1\"}"};
    t.p.renew(t.p.ctx, &stranger, on_done, NULL);
    assert_int_equal(t.err.code, ERR_FORBIDDEN);
    assert_string_equal(t.err.msg, "WorkerGroup ml/llama cannot be renewed: another user created it");
    store_put_json(t.stores[KIND_WORKERGROUP],
                   "{\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"6\","
                   "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{}}");
    refuses_to_renew("{\"group\":\"llama\",\"uid\":\"u-1\"}", &other, ERR_NOT_FOUND,
                     "WorkerGroup ml/llama cannot be renewed: it is being deleted");
}

static void a_detached_one_needs_no_session(void **state)
{
    (void)state;
    create(DETACHED, NULL);
    refuses_to_renew("{\"group\":\"llama\",\"uid\":\"u-1\"}", &session, ERR_INVALID,
                     "WorkerGroup ml/llama cannot be renewed: it is detached, so it needs no session");
}

static void a_single_request_has_no_session(void **state)
{
    (void)state;
    ask(t.p.create, BOUND, NULL);
    assert_int_equal(t.err.code, ERR_INVALID);
    assert_non_null(strstr(t.err.msg, "\"Detached\""));
    assert_true(stub_quiet(t.client));
}

static void it_is_deleted_if_the_caller_could(void **state)
{
    (void)state;
    ask(t.p.remove, "{\"group\":\"llama\"}", NULL);
    allow("\"verb\":\"delete\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"name\":\"llama\"");
    struct stub_call *call = next(VERB_DELETE, KIND_WORKERGROUP);
    assert_string_equal(call->request.name, "llama");
    stub_answer(call, 200, "{}");
    assert_string_equal(t.json, "null");
    ask(t.p.remove, "{\"name\":\"llama\"}", NULL);
    assert_int_equal(t.err.code, ERR_INVALID);
}

static void put_group(const char *version, const char *spec)
{
    char json[512];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"%s\"},"
             "\"spec\":{%s}}",
             version, spec);
    store_put_json(t.stores[KIND_WORKERGROUP], json);
}

static void restarts_by_another_text(void)
{
    ask(t.p.restart, "{\"group\":\"llama\"}", NULL);
    allow("\"verb\":\"patch\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"name\":\"llama\"");
    struct stub_call *call = next(VERB_PATCH_MERGE, KIND_WORKERGROUP);
    assert_non_null(strstr(call->request.body, "{\"spec\":{\"worker\":{\"restartedAt\":\"20"));
    stub_answer(call, 200, "{}");
    assert_string_equal(t.json, "null");
}

static void it_is_restarted_by_another_text_in_its_worker(void **state)
{
    (void)state;
    put_group("1", "\"worker\":{\"python\":\"train\"}");
    restarts_by_another_text();
}

static void it_is_restarted_with_another_worker(void **state)
{
    (void)state;
    store_put_json(t.stores[KIND_WORKERGROUP],
                   "{\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"1\","
                   "\"annotations\":{\"cadre.dev/created-by\":\"bob\"}},\"spec\":{\"worker\":{\"python\":\"train\"}}}");
    ask(t.p.restart,
        "{\"workerGroup\":{\"metadata\":{\"name\":\"llama\"},\"spec\":{\"worker\":{\"python\":\"other\"}}}}", NULL);
    allow("\"verb\":\"patch\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"name\":\"llama\"");
    struct stub_call *call = next(VERB_PATCH_JSON, KIND_WORKERGROUP);
    assert_string_equal(
        call->request.body,
        "[{\"op\":\"add\",\"path\":\"/spec/worker\",\"value\":{\"python\":\"other\"}},"
        "{\"op\":\"replace\",\"path\":\"/metadata/annotations/cadre.dev~1created-by\",\"value\":\"anna\"}]");
    stub_answer(call, 200, "{}");
    assert_string_equal(t.json, "null");
    put_group("2", "\"worker\":{\"python\":\"train\"}"); // somebody has applied it
    ask(t.p.restart,
        "{\"workerGroup\":{\"metadata\":{\"name\":\"llama\"},\"spec\":{\"worker\":{\"python\":\"other\"}}}}", NULL);
    allow("\"verb\":\"patch\",\"group\":\"cadre.dev\",\"resource\":\"workergroups\",\"name\":\"llama\"");
    call = next(VERB_PATCH_JSON, KIND_WORKERGROUP);
    assert_null(strstr(call->request.body, "created-by"));
    stub_answer(call, 200, "{}");
    ask(t.p.restart, "{\"workerGroup\":{\"metadata\":{\"name\":\"llama\"},\"spec\":{}}}", NULL);
    assert_int_equal(t.err.code, ERR_INVALID);
}

// The command of its container runs by an agent, too.
static void one_without_a_worker_is_restarted(void **state)
{
    (void)state;
    put_group("1", "");
    restarts_by_another_text();
}

static void one_without_an_agent_is_not(void **state)
{
    (void)state;
    ask(t.p.restart, "{\"group\":\"llama\"}", NULL);
    assert_int_equal(t.err.code, ERR_NOT_FOUND);
    put_group("1", "\"runtime\":\"Plain\"");
    ask(t.p.restart, "{\"group\":\"llama\"}", NULL);
    assert_int_equal(t.err.code, ERR_INVALID);
    assert_non_null(strstr(t.err.msg, "has the runtime Plain"));
    assert_true(stub_quiet(t.client));
}

static void a_placementgroup_is_made_kept_and_dropped_alike(void **state)
{
    (void)state;
    teardown(NULL);
    start(1);
    ask(t.p.create,
        "{\"placementGroup\":{\"metadata\":{\"name\":\"pool\"},\"spec\":{\"bundles\":[{\"count\":4,\"resources\":{}}]}}"
        "}",
        &session);
    allow("\"verb\":\"create\",\"group\":\"cadre.dev\",\"resource\":\"placementgroups\",\"name\":\"pool\"");
    struct stub_call *call = next(VERB_CREATE, KIND_PLACEMENTGROUP);
    assert_non_null(strstr(call->request.body, "\"kind\":\"PlacementGroup\""));
    stub_answer(
        call, 201,
        "{\"metadata\":{\"name\":\"pool\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"5\"},\"spec\":"
        "{\"bundles\":[{\"count\":4,\"resources\":{}}]}}");
    assert_int_equal(t.err.code, 0);
    stub_answer(next(VERB_PATCH_MERGE, KIND_PLACEMENTGROUP), 200, "{}");
    t.p.ended(t.p.ctx, &session, false);
    for (struct stub_call *c = NULL; !c || c->request.verb != VERB_DELETE;) { // a renewal may be in progress
        while (!(c = stub_next(t.client)))
            ;
        assert_int_equal(c->request.kind, KIND_PLACEMENTGROUP);
        if (c->request.verb == VERB_DELETE)
            break;
        stub_answer(c, 200, "{}");
    }
}

static void put_placement(const char *status)
{
    char json[1024];
    static int version;
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"pool\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"%d\"},"
             "\"spec\":{\"bundles\":[{\"count\":3,\"resources\":{}}]},\"status\":%s}",
             ++version, status);
    store_put_json(t.stores[KIND_PLACEMENTGROUP], json);
}

static void where_bundles_are_is_what_the_status_says(void **state)
{
    (void)state;
    put_placement("{}"); // it has no status yet
    ask(t.p.bundles, "{\"placementGroup\":\"pool\"}", NULL);
    assert_string_equal(t.json, "{\"ready\":false,\"nodes\":[null,null,null]}");
    put_placement("{\"bundles\":3,\"placements\":[{\"node\":\"n1\",\"bundles\":\"0,2\"}],\"conditions\":[{\"type\":"
                  "\"Ready\",\"status\":\"False\",\"message\":\"bundle 1 has no node\"}]}");
    ask(t.p.bundles, "{\"placementGroup\":\"pool\"}", NULL);
    assert_string_equal(t.json,
                        "{\"ready\":false,\"message\":\"bundle 1 has no node\",\"nodes\":[\"n1\",null,\"n1\"]}");
    put_placement("{\"bundles\":3,\"placements\":[{\"node\":\"n1\",\"bundles\":\"0-2\"}],\"conditions\":[{\"type\":"
                  "\"Ready\",\"status\":\"True\"}]}");
    ask(t.p.bundles, "{\"placementGroup\":\"pool\"}", NULL);
    assert_string_equal(t.json, "{\"ready\":true,\"nodes\":[\"n1\",\"n1\",\"n1\"]}");
    ask(t.p.bundles, "{\"placementGroup\":\"other\"}", NULL);
    assert_int_equal(t.err.code, ERR_NOT_FOUND);
    ask(t.p.bundles, "{\"group\":\"pool\"}", NULL);
    assert_int_equal(t.err.code, ERR_INVALID);
}

// The status has the first 1,000 nodes.
static void the_pods_name_the_nodes_that_the_status_leaves_out(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(1 << 20);
    buf_puts(
        &b,
        "{\"metadata\":{\"name\":\"pool\",\"namespace\":\"ml\",\"uid\":\"u-1\",\"resourceVersion\":\"900\"},\"spec\":{"
        "\"bundles\":[{\"count\":1001,\"resources\":{}}]},\"status\":{\"bundles\":1001,\"nodes\":1001,\"conditions\":["
        "{\"type\":\"Ready\",\"status\":\"True\"}],\"placements\":[");
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%s{\"node\":\"n%d\",\"bundles\":\"%d\"}", i ? "," : "", i, i);
    buf_puts(&b, "]}}");
    store_put_json(t.stores[KIND_PLACEMENTGROUP], buf_str(&b));
    buf_done(&b);
    store_put_json(
        t.stores[KIND_POD],
        "{\"metadata\":{\"name\":\"pool-plg-0-1000\",\"namespace\":\"ml\",\"uid\":\"u-2\",\"resourceVersion\":\"1\","
        "\"labels\":{\"cadre.dev/group\":\"pool-plg\"},\"annotations\":{\"cadre.dev/bundles\":\"1000\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/"
        "v1alpha1\",\"kind\":\"PlacementGroup\",\"name\":\"pool\",\"uid\":"
        "\"u-1\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n1000\"},\"status\":{\"phase\":\"Running\"}}");
    ask(t.p.bundles, "{\"placementGroup\":\"pool\"}", NULL);
    assert_non_null(strstr(t.json, "\"n999\",\"n1000\"]}"));
}

static void put_node(const char *name, const char *ready, bool cordoned)
{
    char json[512];
    snprintf(
        json, sizeof json,
        "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"1\"},\"spec\":{\"unschedulable\":%s},\"status\":{"
        "\"allocatable\":{\"cpu\":\"7500m\",\"nvidia.com/gpu\":\"4\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
        "\"%s\"}]}}",
        name, cordoned ? "true" : "false", ready);
    store_put_json(t.stores[KIND_NODE], json);
}

static void the_capacity_is_that_of_the_nodes_where_pods_can_go(void **state)
{
    (void)state;
    ask(t.p.capacity, "{}", NULL);
    assert_string_equal(t.json, "{\"nodes\":0,\"resources\":{}}");
    put_node("n1", "True", false);
    put_node("n2", "True", false);
    put_node("lost", "Unknown", false);
    put_node("cordoned", "True", true);
    ask(t.p.capacity, "{}", NULL);
    assert_string_equal(t.json, "{\"nodes\":2,\"resources\":{\"cpu\":15,\"nvidia.com/gpu\":8}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_created_if_the_caller_could, setup, teardown),
        cmocka_unit_test_setup_teardown(else_it_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_api_server_says_is_passed_on, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_renewed_while_the_session_lives, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_somebody_deleted_is_not_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(another_one_with_its_name_is_not_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_asked_for_again_is_renewed_once_each_time, setup, teardown),
        cmocka_unit_test_setup_teardown(it_goes_when_the_session_says_goodbye, setup, teardown),
        cmocka_unit_test_setup_teardown(also_if_it_says_so_before_the_group_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(the_same_request_takes_it_over, setup, teardown),
        cmocka_unit_test_setup_teardown(another_request_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(its_client_renews_it_in_another_session, setup, teardown),
        cmocka_unit_test_setup_teardown(a_replica_that_is_starting_does_not_say_what_is_deleted, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_else_is_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_detached_one_needs_no_session, setup, teardown),
        cmocka_unit_test_setup_teardown(a_single_request_has_no_session, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_deleted_if_the_caller_could, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_restarted_by_another_text_in_its_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(it_is_restarted_with_another_worker, setup, teardown),
        cmocka_unit_test_setup_teardown(one_without_a_worker_is_restarted, setup, teardown),
        cmocka_unit_test_setup_teardown(one_without_an_agent_is_not, setup, teardown),
        cmocka_unit_test_setup_teardown(a_placementgroup_is_made_kept_and_dropped_alike, setup, teardown),
        cmocka_unit_test_setup_teardown(where_bundles_are_is_what_the_status_says, setup, teardown),
        cmocka_unit_test_setup_teardown(the_pods_name_the_nodes_that_the_status_leaves_out, setup, teardown),
        cmocka_unit_test_setup_teardown(the_capacity_is_that_of_the_nodes_where_pods_can_go, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
