// SPDX-License-Identifier: Apache-2.0
// Plans that are carried out against an API server with errors.
#include "operator/exec/executor.h"

#include "common/base/str.h"
#include "operator/placement/room.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/operator/exec/executor_case.h"
#include "tests/unit/support/kube_fixture.h"
#include "tests/unit/support/object_json.h"
#include "tests/unit/support/store_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PODS "/api/v1/namespaces/ml/pods"
#define SERVICES "/api/v1/namespaces/ml/services"
#define STATUS "/workergroups/g/status"
#define GPUS 8

static const char group_json[] =
    "{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\","
    "\"uid\":\"u-g\",\"resourceVersion\":\"5\",\"generation\":1},\"spec\":{\"replicas\":3,\"runtime\":\"Plain\"},"
    "\"status\":{\"incarnation\":2}}";
static const char node_json[] =
    "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u-n\",\"resourceVersion\":\"1\"},\"status\":{\"allocatable\":{\"cpu\":"
    "\"8\","
    "\"pods\":\"9\",\"nvidia.com/gpu\":\"8\"},\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}";

// The answer to requests with this method, this target, and this text in the body.
struct scripted {
    const char *method, *target, *has;
    int times; // 0 = always
    struct fakeapi_rule answer;
};

static struct executor_case c;

static struct {
    struct kube_fixture *f;
    struct scripted script[8];
    size_t n_script;
    char body[1024]; // of the present answer
} t;

// A pod of the group as the API server has it. `owner` NULL: it has no owner.
static const char *pod_text(const char *name, const char *owner, char *buf, size_t size)
{
    char owners[256] = "";
    if (owner)
        snprintf(owners, sizeof owners,
                 ",\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"name\":\"g\","
                 "\"uid\":\"%s\",\"controller\":true}]",
                 owner);
    snprintf(
        buf, size,
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"u-%s\",\"resourceVersion\":"
        "\"10\",\"labels\":{\"cadre.dev/"
        "group\":\"g\"}%s},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"w\",\"resources\":{\"requests\":{"
        "\"nvidia.com/gpu\":\"1\"}}}]}}",
        name, name, owners);
    return buf;
}

static bool fits(const struct scripted *s, const struct fakeapi_request *r)
{
    return s->times >= 0 && str_eq(s->method, r->method) && strstr(r->target, s->target) &&
           (!s->has || strstr(r->body, s->has));
}

// Requests without an answer in the script: a created pod returns as one of ours, everything else returns an empty
// object.
static bool on_request(void *ctx, const struct fakeapi_request *r, struct fakeapi_rule *ret)
{
    (void)ctx;
    for (size_t i = 0; i < t.n_script; i++) {
        struct scripted *s = &t.script[i];
        if (!fits(s, r))
            continue;
        *ret = s->answer;
        if (s->times > 0 && --s->times == 0)
            s->times = -1;
        return true;
    }
    char name[64] = "";
    *ret = (struct fakeapi_rule){.status = 200, .body = "{}"};
    if (str_eq(r->method, "POST") && strstr(r->target, PODS) && strncmp(r->body, "{\"n\":\"", 6) == 0) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(r->body + 6, "\""), r->body + 6);
        ret->status = 201;
        ret->body = pod_text(name, "u-g", t.body, sizeof t.body);
    }
    return true;
}

static void script(const char *method, const char *target, const char *has, int times, struct fakeapi_rule answer)
{
    t.script[t.n_script++] = (struct scripted){method, target, has, times, answer};
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.f = fixture_new(false);
    fakeapi_handler(t.f->api, on_request, NULL);
    executor_case_init(&c, t.f->loop, fixture_client(t.f), group_json, node_json);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kube_client_free(t.f->client);
    t.f->client = NULL;
    executor_case_done(&c);
    fixture_free(t.f);
    return 0;
}

static void plan_pod(const char *name, int stage)
{
    executor_case_plan_pod(&c, name, arena_printf(&c.arena, "{\"n\":\"%s\"}", name), RESOURCE_GPU, stage);
}

static void plan_three_pods(int stage)
{
    plan_pod("g-0-2", stage);
    plan_pod("g-1-2", stage);
    plan_pod("g-2-2", stage);
}

static void plan_service(int stage)
{
    struct action *a = plan_add(&c.plan, ACTION_CREATE_SERVICE, stage);
    a->name = "g";
    a->body = "{}";
}

static void plan_status(int stage)
{
    plan_add(&c.plan, ACTION_STATUS, stage)->body = "{\"status\":{\"attempt\":1}}";
}

static void plan_delete(int stage)
{
    struct action *a = plan_add(&c.plan, ACTION_DELETE_POD, stage);
    a->name = "g-0-1";
    a->uid = "u-old";
    a->grace_s = -1;
}

static void plan_dry_run(void)
{
    executor_case_plan_dry_run(&c.plan, "{\"n\":\"dry\"}", 42);
}

static void carry_on(void)
{
    for (int i = 0; i < 600 && !c.done; i++)
        loop_run_once(t.f->loop, 100);
    assert_int_equal(c.done, 1);
}

static void carry_out(void)
{
    executor_case_start(&c);
    carry_on();
}

// Returns how many requests with this method and target the server has read.
static int asked(const char *method, const char *target)
{
    int n = 0;
    for (int i = 0; i < fakeapi_count(t.f->api); i++)
        n += str_eq(fakeapi_at(t.f->api, i)->method, method) && strstr(fakeapi_at(t.f->api, i)->target, target);
    return n;
}

static bool has_pod(const char *name)
{
    return store_get(c.stores[KIND_POD], "ml", name) != NULL;
}

static int gpus_used(void)
{
    return (int)(room_used(cluster_room(c.x.cluster, "n1"), RESOURCE_GPU) / 1000);
}

#define QUOTA                                                                                                       \
    ((struct fakeapi_rule){.status = 403,                                                                           \
                           .body = "{\"kind\":\"Status\",\"code\":403,\"reason\":\"Forbidden\",\"message\":\"pods " \
                                   "\\\"g-1-2\\\" is forbidden: exceeded quota: small\"}"})
#define TAKEN ((struct fakeapi_rule){.status = 409, .body = "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}"})

static void a_gang_is_created(void **state)
{
    (void)state;
    plan_service(STAGE_FIRST);
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_int_equal(fakeapi_count(t.f->api), 5);
    assert_non_null(strstr(fakeapi_at(t.f->api, 0)->target, SERVICES));
    assert_non_null(strstr(fakeapi_at(t.f->api, 4)->target, STATUS));
    // The store has it before any watch delivers it.
    assert_true(has_pod("g-0-2") && has_pod("g-1-2") && has_pod("g-2-2"));
    assert_int_equal(gpus_used(), 3);
    assert_null(c.observations.memory.refusal_reason);
}

// Otherwise another gang would get the same room if its decision came while the Service of the first gang was being
// created.
static void a_gang_takes_its_room_at_once_and_gives_it_back_if_it_does_not_come_to_its_pods(void **state)
{
    (void)state;
    script("POST", SERVICES, NULL, 0, (struct fakeapi_rule){.status = 403, .body = "{\"message\":\"no\"}"});
    plan_service(STAGE_FIRST);
    plan_three_pods(STAGE_SECOND);
    executor_case_start(&c);
    assert_int_equal(gpus_used(), 3);
    carry_on();
    assert_int_equal(asked("POST", PODS), 0);
    assert_int_equal(gpus_used(), 0);
}

static void an_empty_plan_ends_at_once(void **state)
{
    (void)state;
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_int_equal(fakeapi_count(t.f->api), 0);
}

static void quota_in_the_middle_of_a_gang(void **state)
{
    (void)state;
    script("POST", PODS, "g-1-2", 0, QUOTA);
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    carry_out();
    assert_int_equal(c.err.code, 0); // it is not an error: the next decision gives the gang back
    assert_string_equal(c.observations.memory.refusal_reason, REASON_QUOTA_EXCEEDED);
    assert_non_null(strstr(c.observations.memory.refusal_message, "exceeded quota: small"));
    assert_int_equal(c.observations.memory.refusal_incarnation, 2);
    assert_true(has_pod("g-0-2") && !has_pod("g-1-2") && has_pod("g-2-2"));
    assert_int_equal(gpus_used(), 2);
    assert_int_equal(asked("PATCH", STATUS), 0);
}

static void a_pod_that_is_forbidden_for_another_reason(void **state)
{
    (void)state;
    script("POST", PODS, "g-1-2", 0, (struct fakeapi_rule){.status = 403, .body = "{\"message\":\"no\"}"});
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_string_equal(c.observations.memory.refusal_reason, REASON_FORBIDDEN);
}

static void a_pod_of_ours_from_before_a_crash(void **state)
{
    (void)state;
    char ours[1024];
    script("POST", PODS, "g-1-2", 0, TAKEN);
    script("GET", PODS "/g-1-2", NULL, 0, (struct fakeapi_rule){.body = pod_text("g-1-2", "u-g", ours, sizeof ours)});
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_null(c.observations.memory.refusal_reason);
    assert_true(has_pod("g-1-2"));
    assert_int_equal(gpus_used(), 3);
    assert_int_equal(asked("PATCH", STATUS), 1);
}

static void a_pod_of_our_name_that_is_a_stranger_s(void **state)
{
    (void)state;
    char stranger[1024];
    script("POST", PODS, "g-1-2", 0, TAKEN);
    script("GET", PODS "/g-1-2", NULL, 0,
           (struct fakeapi_rule){.body = pod_text("g-1-2", NULL, stranger, sizeof stranger)});
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_string_equal(c.observations.memory.refusal_reason, REASON_NAME_CONFLICT);
    assert_non_null(strstr(c.observations.memory.refusal_message, "Pod g-1-2"));
    assert_false(has_pod("g-1-2"));
    assert_int_equal(gpus_used(), 2);
    assert_int_equal(asked("PATCH", STATUS), 0);
}

// The same name with another UID: the pods of a group that was deleted and created again.
static void a_pod_of_our_namesake(void **state)
{
    (void)state;
    char namesake[1024];
    script("POST", PODS, "g-1-2", 0, TAKEN);
    script("GET", PODS "/g-1-2", NULL, 0,
           (struct fakeapi_rule){.body = pod_text("g-1-2", "u-before", namesake, sizeof namesake)});
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_string_equal(c.observations.memory.refusal_reason, REASON_NAME_CONFLICT);
    assert_false(has_pod("g-1-2"));
}

static void a_pod_that_was_in_the_way_and_is_gone_when_we_look(void **state)
{
    (void)state;
    script("POST", PODS, "g-1-2", 0, TAKEN);
    script("GET", PODS "/g-1-2", NULL, 0, (struct fakeapi_rule){.status = 404, .body = "{}"});
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, ERR_NOT_FOUND); // it is tried again
    assert_null(c.observations.memory.refusal_reason);
    assert_int_equal(gpus_used(), 2); // a pod that does not exist takes no room from the next try
}

static void a_service_of_our_name_that_is_a_stranger_s(void **state)
{
    (void)state;
    script("POST", SERVICES, NULL, 0, TAKEN);
    script("GET", SERVICES "/g", NULL, 0,
           (struct fakeapi_rule){.body =
                                     "{\"kind\":\"Service\",\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":"
                                     "\"u-s\",\"resourceVersion\":\"3\"}}"});
    plan_service(STAGE_FIRST);
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_string_equal(c.observations.memory.refusal_reason, REASON_NAME_CONFLICT);
    assert_non_null(strstr(c.observations.memory.refusal_message, "Service g"));
    assert_int_equal(asked("POST", PODS), 0);
    assert_int_equal(gpus_used(), 0);
}

static void an_api_server_that_fails(void **state)
{
    (void)state;
    script("POST", PODS, "g-1-2", 0, (struct fakeapi_rule){.status = 500, .body = "{\"message\":\"disk full\"}"});
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    carry_out();
    assert_int_not_equal(c.err.code, 0);
    assert_non_null(strstr(c.err.msg, "disk full"));
    assert_null(c.observations.memory.refusal_reason);
    assert_int_equal(gpus_used(), 2);
    assert_int_equal(asked("PATCH", STATUS), 0);
}

static void an_api_server_that_asks_to_slow_down(void **state)
{
    (void)state;
    script("POST", PODS, "g-1-2", 1,
           (struct fakeapi_rule){.status = 429, .headers = "Retry-After: 1\r\n", .body = "{\"message\":\"later\"}"});
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_true(has_pod("g-1-2"));
    assert_int_equal(asked("POST", PODS), 4);
}

// Nobody knows whether the pod was created. Its room is given back; the watch or the next try will show the truth.
static void a_connection_that_breaks(void **state)
{
    (void)state;
    script("POST", PODS, "g-1-2", 0,
           (struct fakeapi_rule){.status = 201, .body = "{\"metadata", .ending = FAKEAPI_RESET});
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    carry_out();
    assert_int_not_equal(c.err.code, 0);
    assert_false(has_pod("g-1-2"));
    assert_int_equal(gpus_used(), 2);
    assert_int_equal(asked("PATCH", STATUS), 0);
}

static void what_the_watch_has_shown_outlives_a_broken_connection(void **state)
{
    (void)state;
    char ours[1024];
    script("POST", PODS, "g-1-2", 0, (struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    plan_pod("g-1-2", STAGE_SECOND);
    executor_case_start(&c);
    assert_true(fixture_wait_count(t.f, 1));
    const struct object *pod = object_of_json(KIND_POD, pod_text("g-1-2", "u-g", ours, sizeof ours));
    cluster_set_pod(c.x.cluster, pod_of(pod));
    object_unref(pod);
    kube_client_free(t.f->client);
    t.f->client = NULL;
    assert_int_equal(c.done, 1);
    assert_int_equal(gpus_used(), 1);
}

static void a_group_that_is_deleted_meanwhile(void **state)
{
    (void)state;
    script("PATCH", STATUS, NULL, 0, (struct fakeapi_rule){.status = 404, .body = "{}"});
    plan_status(STAGE_FIRST);
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_int_equal(asked("POST", PODS), 0);
}

static void a_status_that_cannot_be_written_stops_what_follows_from_it(void **state)
{
    (void)state;
    script("PATCH", STATUS, NULL, 0, (struct fakeapi_rule){.status = 500, .body = "{}"});
    plan_status(STAGE_FIRST);
    plan_delete(STAGE_SECOND);
    carry_out();
    assert_int_not_equal(c.err.code, 0);
    assert_int_equal(asked("DELETE", PODS), 0);
}

static void a_pod_that_is_gone_is_deleted(void **state)
{
    (void)state;
    static const int status[] = {404, 409};
    for (size_t i = 0; i < 2; i++) {
        script("DELETE", PODS "/g-0-1", NULL, 1, (struct fakeapi_rule){.status = status[i], .body = "{}"});
        plan_init(&c.plan, &c.arena);
        plan_delete(STAGE_FIRST);
        c.done = 0;
        carry_out();
        assert_int_equal(c.err.code, 0);
    }
    assert_non_null(strstr(fakeapi_at(t.f->api, 0)->body, "u-old")); // only the pod with this UID
}

static void a_template_that_passes(void **state)
{
    (void)state;
    plan_dry_run();
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_non_null(strstr(fakeapi_at(t.f->api, 0)->target, "dryRun=All"));
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_OK);
    assert_int_equal(c.observations.memory.dry_run_hash, 42);
    assert_false(has_pod("dry"));
}

static void a_template_that_is_refused(void **state)
{
    (void)state;
    script("POST", PODS, "dry", 0, (struct fakeapi_rule){.status = 422, .body = "{\"message\":\"image: required\"}"});
    plan_dry_run();
    plan_three_pods(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_REFUSED);
    assert_non_null(strstr(c.observations.memory.dry_run_message, "image: required"));
}

static void a_template_that_no_quota_allows(void **state)
{
    (void)state;
    script("POST", PODS, "dry", 0, QUOTA);
    plan_dry_run();
    carry_out();
    assert_int_equal(c.err.code, 0);
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_NONE);
    assert_string_equal(c.observations.memory.refusal_reason, REASON_QUOTA_EXCEEDED);
}

static void an_answer_that_is_no_pod(void **state)
{
    (void)state;
    script("POST", PODS, "dry", 0, (struct fakeapi_rule){.body = "<html>welcome to the proxy</html>"});
    plan_dry_run();
    carry_out();
    assert_int_not_equal(c.err.code, 0);
    assert_int_equal(c.observations.memory.dry_run, DRY_RUN_NONE);
}

static void a_client_that_is_taken_down_ends_what_is_in_flight(void **state)
{
    (void)state;
    script("POST", PODS, NULL, 0, (struct fakeapi_rule){.ending = FAKEAPI_SILENT});
    plan_three_pods(STAGE_SECOND);
    plan_status(STAGE_THIRD);
    executor_case_start(&c);
    assert_true(fixture_wait_count(t.f, 3));
    kube_client_free(t.f->client);
    t.f->client = NULL;
    assert_int_equal(c.done, 1);
    assert_int_equal(c.err.code, ERR_CANCELED);
    assert_int_equal(gpus_used(), 0);
}

static void events_go_their_own_way(void **state)
{
    (void)state;
    script("POST", "/events", NULL, 0, (struct fakeapi_rule){.status = 500, .body = "{}"});
    struct action *a = plan_add(&c.plan, ACTION_EVENT, STAGE_FIRST);
    a->reason = "Scheduled";
    a->note = "a note";
    plan_status(STAGE_SECOND);
    carry_out();
    assert_int_equal(c.err.code, 0); // a lost Event stops nothing
    assert_int_equal(asked("PATCH", STATUS), 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_gang_is_created),
        T(a_gang_takes_its_room_at_once_and_gives_it_back_if_it_does_not_come_to_its_pods),
        T(an_empty_plan_ends_at_once),
        T(quota_in_the_middle_of_a_gang),
        T(a_pod_that_is_forbidden_for_another_reason),
        T(a_pod_of_ours_from_before_a_crash),
        T(a_pod_of_our_name_that_is_a_stranger_s),
        T(a_pod_of_our_namesake),
        T(a_pod_that_was_in_the_way_and_is_gone_when_we_look),
        T(a_service_of_our_name_that_is_a_stranger_s),
        T(an_api_server_that_fails),
        T(an_api_server_that_asks_to_slow_down),
        T(a_connection_that_breaks),
        T(what_the_watch_has_shown_outlives_a_broken_connection),
        T(a_group_that_is_deleted_meanwhile),
        T(a_status_that_cannot_be_written_stops_what_follows_from_it),
        T(a_pod_that_is_gone_is_deleted),
        T(a_template_that_passes),
        T(a_template_that_is_refused),
        T(a_template_that_no_quota_allows),
        T(an_answer_that_is_no_pod),
        T(a_client_that_is_taken_down_ends_what_is_in_flight),
        T(events_go_their_own_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
