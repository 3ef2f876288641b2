// SPDX-License-Identifier: Apache-2.0
// The documents that Cadre writes, to the byte: Lease, Event, Service.
#include "common/base/json.h"
#include "common/base/mem.h"
#include "operator/api/endpointslice.h"
#include "operator/api/event.h"
#include "operator/api/lease.h"
#include "operator/api/object_decode.h"
#include "operator/api/service.h"
#include "tests/unit/operator/api/test_arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void a_lease_is_written_and_read(void **state)
{
    (void)state;
    struct lease l = {
        .obj.meta = {.name = "cadre",
                     .ns = "cadre-system",
                     .resource_version = "42",
                     .uid = "u-1", // only the API server writes this and the next ones
                     .generation = 2,
                     .created_ms = INT64_C(1767323045678)},
        .holder = "operator-0",
        .duration_s = 15,
        .transitions = 2,
        .acquired_ms = INT64_C(1767323045678),
        .renewed_ms = INT64_C(1767323046000),
    };
    const char *json = lease_encode(&l, &arena);
    assert_string_equal(
        json, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"cadre\","
              "\"namespace\":\"cadre-system\",\"resourceVersion\":\"42\"},\"spec\":{\"holderIdentity\":"
              "\"operator-0\",\"leaseDurationSeconds\":15,\"leaseTransitions\":2,\"acquireTime\":"
              "\"2026-01-02T03:04:05.678000Z\",\"renewTime\":\"2026-01-02T03:04:06.000000Z\"}}");
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(object_decode(KIND_LEASE, json, strlen(json), &o, &err), 0);
    const struct lease *back = lease_of(o);
    assert_string_equal(back->holder, "operator-0");
    assert_int_equal(back->duration_s, 15);
    assert_int_equal(back->transitions, 2);
    assert_int_equal(back->acquired_ms, l.acquired_ms);
    assert_int_equal(back->renewed_ms, l.renewed_ms);
    object_unref(o);
}

static void a_lease_that_is_free_names_nobody(void **state)
{
    (void)state;
    struct label labels[] = {{"app", "cadre"}};
    struct lease l = {.obj.meta = {.name = "cadre", .ns = "cadre-system", .labels = {labels, 1}}};
    assert_string_equal(
        lease_encode(&l, &arena),
        "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"cadre\","
        "\"namespace\":\"cadre-system\",\"labels\":{\"app\":\"cadre\"}},\"spec\":{\"holderIdentity\":\"\","
        "\"leaseTransitions\":0,\"acquireTime\":null,\"renewTime\":null}}");
}

static struct event an_event(void)
{
    return (struct event){
        .ns = "ml",
        .name = "llama.1",
        .type = "Warning",
        .reason = "Infeasible",
        .action = "Plan",
        .note = "needs 4 nodes",
        .controller = "cadre.dev/operator",
        .instance = "operator-0",
        .regarding_api_version = "cadre.dev/v1alpha1",
        .regarding_kind = "WorkerGroup",
        .regarding_ns = "ml",
        .regarding_name = "llama",
        .regarding_uid = "u-1",
        .time_ms = INT64_C(1767323045678),
    };
}

static void an_event_is_written(void **state)
{
    (void)state;
    struct event e = an_event();
    assert_string_equal(
        event_encode(&e, &arena),
        "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"llama.1\","
        "\"namespace\":\"ml\"},\"eventTime\":\"2026-01-02T03:04:05.678000Z\",\"type\":\"Warning\","
        "\"reason\":\"Infeasible\",\"action\":\"Plan\",\"note\":\"needs 4 nodes\","
        "\"reportingController\":\"cadre.dev/operator\",\"reportingInstance\":\"operator-0\","
        "\"regarding\":{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"namespace\":\"ml\","
        "\"name\":\"llama\",\"uid\":\"u-1\"}}");
}

static void a_series_starts_with_the_second_event(void **state)
{
    (void)state;
    struct event e = an_event();
    e.series_count = 2;
    e.series_last_ms = INT64_C(1767323046000);
    const char *series = "\"series\":{\"count\":2,\"lastObservedTime\":\"2026-01-02T03:04:06.000000Z\"}";
    assert_non_null(strstr(event_encode(&e, &arena), series));
    assert_string_equal(event_series_patch(&e, &arena), arena_printf(&arena, "{%s}", series));
}

static void a_note_is_cut_between_characters(void **state)
{
    (void)state;
    struct event e = an_event();
    char note[2000];
    for (size_t start = 0; start < 2; start++) { // with and without a character across the limit
        memset(note, 'x', sizeof note);
        for (size_t i = start; i + 2 <= 1500; i += 2)
            memcpy(note + i, "\xc3\xa9", 2);
        note[1500] = '\0';
        e.note = note;
        const char *json = event_encode(&e, &arena);
        struct json *root;
        struct err err = ERR_INIT;
        assert_int_equal(json_parse(json, strlen(json), NULL, &arena, &root, &err), 0);
        const char *got = json_str(json_get(root, "note"), &arena);
        assert_int_equal(strlen(got), 1024 - start);
        assert_memory_equal(got, note, 1024 - start);
    }
}

static void words_of_an_event_fit_the_api(void **state)
{
    (void)state;
    struct event e = an_event();
    char word[400], note[2000];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    memset(note, '\xff', sizeof note - 1); // each byte becomes a character of three bytes
    note[sizeof note - 1] = '\0';
    e.reason = e.action = e.instance = word;
    e.note = note;
    const char *json = event_encode(&e, &arena);
    struct json *root;
    struct err err = ERR_INIT;
    assert_int_equal(json_parse(json, strlen(json), NULL, &arena, &root, &err), 0);
    assert_int_equal(strlen(json_str(json_get(root, "reason"), &arena)), 128);
    assert_int_equal(strlen(json_str(json_get(root, "action"), &arena)), 128);
    assert_int_equal(strlen(json_str(json_get(root, "reportingInstance"), &arena)), 128);
    assert_int_equal(strlen(json_str(json_get(root, "note"), &arena)), 1023);
}

static void a_gang_has_a_headless_service(void **state)
{
    (void)state;
    struct label labels[] = {{"app.kubernetes.io/name", "cadre"}, {"cadre.dev/group", "llama"}};
    struct service_spec s = {
        .ns = "ml",
        .name = "llama",
        .labels = {labels, 2},
        .selector = {labels + 1, 1},
        .owner = {.api_version = "cadre.dev/v1alpha1", .kind = "WorkerGroup", .name = "llama", .uid = "u-1"},
        .port = 29500,
    };
    assert_string_equal(
        service_encode(&s, &arena),
        "{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\","
        "\"labels\":{\"app.kubernetes.io/name\":\"cadre\",\"cadre.dev/group\":\"llama\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"name\":"
        "\"llama\",\"uid\":\"u-1\",\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{"
        "\"clusterIP\":\"None\",\"publishNotReadyAddresses\":true,\"selector\":{\"cadre.dev/group\":"
        "\"llama\"},\"ports\":[{\"name\":\"rendezvous\",\"port\":29500}]}}");
}

// Kubernetes publishes nothing for it. The operator writes the endpoints.
static void a_service_without_a_selector(void **state)
{
    (void)state;
    struct service_spec s = {.ns = "ml", .name = "llama", .port = 29500};
    const struct object *o;
    struct err err = ERR_INIT;
    const char *json = service_encode(&s, &arena);
    assert_null(strstr(json, "selector"));
    assert_int_equal(object_decode(KIND_SERVICE, json, strlen(json), &o, &err), 0);
    assert_false(service_of(o)->selects);
    object_unref(o);
    json = "{\"metadata\":{\"name\":\"llama\"},\"spec\":{\"selector\":{\"cadre.dev/group\":\"llama\"}}}";
    assert_int_equal(object_decode(KIND_SERVICE, json, strlen(json), &o, &err), 0);
    assert_true(service_of(o)->selects);
    object_unref(o);
}

static struct label slice_labels[] = {{LABEL_SLICE_MANAGED_BY, SLICE_MANAGED_BY}, {LABEL_SLICE_SERVICE, "llama"}};
static const struct endpoint two_pods[] = {{"10.1.0.3", "llama-0", "n1", "llama-0-4", "u-0"},
                                           {"10.1.0.4", "llama-1", "n2", "llama-1-4", "u-1"}};

static struct endpointslice_spec slice_spec(void)
{
    return (struct endpointslice_spec){
        .ns = "ml",
        .name = "llama-ipv4-0",
        .labels = {slice_labels, ARRAY_LEN(slice_labels)},
        .endpoints = two_pods,
        .n_endpoints = 1,
        .port = 29500,
    };
}

static void names_of_pods_are_an_endpointslice(void **state)
{
    (void)state;
    struct endpointslice_spec s = slice_spec();
    assert_string_equal(
        endpointslice_encode(&s, &arena),
        "{\"apiVersion\":\"discovery.k8s.io/v1\",\"kind\":\"EndpointSlice\",\"metadata\":{\"name\":\"llama-ipv4-0\","
        "\"namespace\":\"ml\",\"labels\":{\"endpointslice.kubernetes.io/managed-by\":\"cadre.dev\","
        "\"kubernetes.io/"
        "service-name\":\"llama\"}},\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"10.1.0.3\"],"
        "\"conditions\":{\"ready\":true,\"serving\":true},\"hostname\":\"llama-0\",\"nodeName\":\"n1\",\"targetRef\":{"
        "\"kind\":\"Pod\",\"namespace\":\"ml\",\"name\":\"llama-0-4\",\"uid\":\"u-0\"}}],\"ports\":[{\"name\":"
        "\"rendezvous\",\"protocol\":\"TCP\",\"port\":29500}]}");
    s.ipv6 = true;
    assert_non_null(strstr(endpointslice_encode(&s, &arena), "\"addressType\":\"IPv6\""));
}

static void a_patch_says_what_it_changes_and_of_which_version(void **state)
{
    (void)state;
    struct endpointslice_spec s = slice_spec();
    s.n_endpoints = 0;
    assert_string_equal(
        endpointslice_patch(&s, "300", &arena),
        "{\"metadata\":{\"resourceVersion\":\"300\"},\"endpoints\":[],\"ports\":[{\"name\":\"rendezvous\","
        "\"protocol\":\"TCP\",\"port\":29500}]}");
}

static uint64_t hash_read(const char *json)
{
    const struct object *o;
    struct err err = ERR_INIT;
    if (object_decode(KIND_ENDPOINTSLICE, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    uint64_t hash = endpointslice_of(o)->hash;
    object_unref(o);
    return hash;
}

static void what_was_written_is_recognized(void **state)
{
    (void)state;
    struct endpointslice_spec s = slice_spec();
    uint64_t one = endpointslice_hash(two_pods, 1, 29500), none = endpointslice_hash(NULL, 0, 29500);
    assert_true(hash_read(endpointslice_encode(&s, &arena)) == one);
    s.n_endpoints = 0;
    assert_true(hash_read(endpointslice_encode(&s, &arena)) == none);
    s.n_endpoints = 2;
    assert_true(hash_read(endpointslice_encode(&s, &arena)) == endpointslice_hash(two_pods, 2, 29500));
    assert_true(one != none && one != endpointslice_hash(two_pods, 1, 29501) &&
                one != endpointslice_hash(two_pods + 1, 1, 29500));
}

// Changes by others: one more address, no host name, no endpoint.
static void what_others_have_changed_is_seen(void **state)
{
    static const char *const changed[] = {
        "\"endpoints\":[{\"addresses\":[\"10.1.0.3\",\"10.1.0.9\"],\"hostname\":\"llama-0\",\"targetRef\":{\"uid\":\"u-"
        "0\"}}],"
        "\"ports\":[{\"port\":29500}]",
        "\"endpoints\":[{\"addresses\":[\"10.1.0.3\"],\"targetRef\":{\"uid\":\"u-0\"}}],\"ports\":[{\"port\":29500}]",
        "\"endpoints\":[{\"addresses\":[\"10.1.0.3\"],\"hostname\":\"llama-0\"}],\"ports\":[{\"port\":29500}]",
        "\"endpoints\":[{\"addresses\":[\"10.1.0.3\"],\"hostname\":\"llama-0\",\"targetRef\":{\"uid\":\"u-0\"}}],"
        "\"ports\":[]",
        "\"endpoints\":null,\"ports\":null",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(changed); i++)
        assert_true(hash_read(arena_printf(&arena, "{\"metadata\":{\"name\":\"s\"},%s}", changed[i])) !=
                    endpointslice_hash(two_pods, 1, 29500));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_lease_is_written_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lease_that_is_free_names_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(an_event_is_written, setup, teardown),
        cmocka_unit_test_setup_teardown(a_series_starts_with_the_second_event, setup, teardown),
        cmocka_unit_test_setup_teardown(a_note_is_cut_between_characters, setup, teardown),
        cmocka_unit_test_setup_teardown(words_of_an_event_fit_the_api, setup, teardown),
        cmocka_unit_test_setup_teardown(a_gang_has_a_headless_service, setup, teardown),
        cmocka_unit_test_setup_teardown(a_service_without_a_selector, setup, teardown),
        cmocka_unit_test_setup_teardown(names_of_pods_are_an_endpointslice, setup, teardown),
        cmocka_unit_test_setup_teardown(a_patch_says_what_it_changes_and_of_which_version, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_written_is_recognized, setup, teardown),
        cmocka_unit_test_setup_teardown(what_others_have_changed_is_seen, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
