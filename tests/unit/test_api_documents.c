// SPDX-License-Identifier: Apache-2.0
// The documents that Cadre writes, to the byte: Lease, Event, Service.
#include "common/base/json.h"
#include "operator/api/event.h"
#include "operator/api/lease.h"
#include "operator/api/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static void a_lease_is_written_and_read(void **state)
{
    (void)state;
    struct lease l = {
        .obj.meta = {.name = "cadre", .ns = "cadre-system", .resource_version = "42"},
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
    memset(note, '\xff', sizeof note - 1); // each becomes a character of three bytes
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
