// SPDX-License-Identifier: Apache-2.0
// Cases that the golden plans (test_golden_plan.c) and the simulation do not show well.
#include "tests/unit/support/group_case.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "operator/reconcile/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static void backoff_doubles_up_to_its_maximum(void **state)
{
    static const int64_t want[] = {1000, 2000, 4000, 8000, 10000, 10000};
    (void)state;
    for (int32_t n = 1; n <= (int32_t)ARRAY_LEN(want); n++)
        for (uint64_t seed = 0; seed < 50; seed++) {
            int64_t ms = wait_backoff_ms(1000, 10000, n, seed);
            assert_true(ms >= want[n - 1] && ms <= want[n - 1] + want[n - 1] / 10);
        }
}

static void backoff_differs_from_group_to_group(void **state)
{
    bool differs = false;
    (void)state;
    for (uint64_t seed = 1; seed < 20; seed++)
        differs |= wait_backoff_ms(1000, 10000, 3, seed) != wait_backoff_ms(1000, 10000, 3, 0);
    assert_true(differs);
    assert_int_equal(wait_backoff_ms(1000, 10000, 3, 7), wait_backoff_ms(1000, 10000, 3, 7));
}

static void backoff_knows_its_limits(void **state)
{
    (void)state;
    assert_int_equal(wait_backoff_ms(0, 300000, INT32_MAX, 1), 0);
    assert_int_equal(wait_backoff_ms(0, 0, 3, 1), 0);
    int64_t day = 86400 * 1000LL;
    assert_true(wait_backoff_ms(day, day, INT32_MAX, 1) <= day + day / 10);
    assert_true(wait_backoff_ms(2000, 1000, 1, 1) <= 1100); // if the maximum is below the first pause, the maximum wins
}

#define GROUP(status, gpus)                                                                                            \
    "{\"now\":\"2026-03-01T12:00:00Z\",\"workergroup\":{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":"    \
    "\"u\",\"generation\":1},\"spec\":{\"runtime\":\"Plain\",\"replicas\":10000,\"workersPerReplica\":64,\"template\"" \
    ":{\"spec\":{\"containers\":[{\"name\":\"w\",\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"" gpus "\"}}}]}}}," \
    "\"status\":{" status "}},\"memory\":{\"dryRun\":\"OK\",\"statusWantedAt\":\"2026-03-01T11:00:00Z\"},\"pods\":["

#define POD(attempt, incarnation, phase)                                                                               \
    "{\"metadata\":{\"name\":\"g-0-" incarnation "\",\"namespace\":\"ml\",\"uid\":\"p\",\"labels\":{\"cadre.dev/group" \
    "\":\"g\",\"cadre.dev/index\":\"0\",\"cadre.dev/attempt\":\"" attempt                                              \
    "\",\"cadre.dev/incarnation\":\"" incarnation                                                                      \
    "\"},\"annotations\":{\"cadre.dev/spec-hash\":\"@spec-hash@\"},\"ownerReferences\":[{\"apiVersion\":"              \
    "\"cadre.dev/v1alpha1\",\"kind\":\"WorkerGroup\",\"name\":\"g\",\"uid\":\"u\",\"controller\":true}]},\"spec\":{}," \
    "\"status\":{\"phase\":\"" phase "\"}}"

static bool says(const struct plan *p, struct arena *a, const char *what)
{
    return strstr(plan_describe(p, a), what) != NULL;
}

static void counters_stop_at_the_end_of_their_range(void **state)
{
    (void)state;
    struct group_case *c =
        group_case_new(GROUP("\"attempt\":2147483647,\"incarnation\":2147483647,\"restarts\":2147483647", "1")
                           POD("2147483647", "2147483647", "Failed") "]}");
    const struct plan *p = group_case_decide(c);
    assert_true(says(p, &c->arena, "\"attempt\":2147483647,\"incarnation\":2147483647,\"restarts\":2147483647"));
    group_case_free(c);
}

static void more_gpus_than_there_can_be_are_only_many(void **state)
{
    (void)state;
    struct group_case *c = group_case_new(GROUP("\"attempt\":1", "9000000000000000") "]}");
    const struct plan *p = group_case_decide(c);
    assert_true(says(p, &c->arena, "\"worldSize\":640000,"));
    assert_true(says(p, &c->arena, "\"gpus\":2147480000,")); // the highest multiple of the replicas
    assert_true(p->waits_for_room);
    group_case_free(c);
}

// A user decides how long the messages of containers are. The API server takes 32 KiB, and an Event 1 KiB.
static void long_messages_are_cut_between_characters(void **state)
{
    struct arena a = ARENA_INIT;
    (void)state;
    char *long_text = arena_alloc(&a, 40001);
    for (size_t i = 0; i < 40000; i += 2)
        memcpy(long_text + i, "\xc3\xa9", 2);
    struct group_case *c = group_case_new(GROUP("\"attempt\":1", "1") "]}");
    c->memory.dry_run = DRY_RUN_REFUSED;
    c->memory.dry_run_message = long_text;
    const struct plan *p = group_case_decide(c);
    assert_int_equal(p->n, 2);
    const char *body = strstr(p->actions[0].body, "\"Accepted\""), *note = p->actions[1].note;
    const char *message = strstr(body, "\"message\":\"") + strlen("\"message\":\"");
    size_t len = strcspn(message, "\"");
    assert_true(len > 4000 && len <= 4096 && str_utf8_valid(message, len));
    assert_true(strlen(note) > 990 && strlen(note) <= 1000 && str_utf8_valid(note, strlen(note)));
    group_case_free(c);
    arena_done(&a);
}

static void a_status_is_written_for_the_version_that_was_read(void **state)
{
    (void)state;
    struct group_case *c = group_case_new(
        "{\"now\":\"2026-03-01T12:00:00Z\",\"workergroup\":{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":"
        "\"u\",\"resourceVersion\":\"77\"},\"spec\":{}},\"memory\":{\"statusWantedAt\":\"2026-03-01T11:00:00Z\"}}");
    const struct plan *p = group_case_decide(c);
    assert_true(p->n && p->actions[0].kind == ACTION_STATUS);
    const char *prefix = "{\"metadata\":{\"resourceVersion\":\"77\"},\"status\":{";
    assert_true(str_starts(p->actions[0].body, prefix));
    group_case_free(c);
}

#define KILLED                                                                                                       \
    "{\"metadata\":{\"name\":\"g-0-0\",\"namespace\":\"ml\",\"uid\":\"p\",\"labels\":{\"cadre.dev/group\":\"g\","    \
    "\"cadre.dev/index\":\"0\",\"cadre.dev/attempt\":\"1\",\"cadre.dev/incarnation\":\"0\"},\"annotations\":{"       \
    "\"cadre.dev/spec-hash\":\"@spec-hash@\"},\"ownerReferences\":[{\"apiVersion\":\"cadre.dev/v1alpha1\",\"kind\":" \
    "\"WorkerGroup\",\"name\":\"g\",\"uid\":\"u\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n\"},\"status\":{" \
    "\"phase\":"                                                                                                     \
    "\"Running\",\"containerStatuses\":[{\"name\":\"w\",\"state\":{\"running\":{}}},{\"name\":\"s\",\"state\":{"     \
    "\"terminated\":{\"exitCode\":143,\"reason\":\"Error\",\"finishedAt\":\"2026-03-01T11:00:00Z\"}}}]}}"

// The clock of the kubelet is an hour slow, and later the operator's clock is set a day forward.
static void a_killed_container_is_waited_for_by_our_own_clock(void **state)
{
    (void)state;
    struct group_case *c = group_case_new(
        "{\"now\":\"2026-03-01T12:00:00Z\",\"workergroup\":{\"metadata\":{\"name\":\"g\",\"namespace\":\"ml\",\"uid\":"
        "\"u\",\"generation\":1},\"spec\":{\"runtime\":\"Plain\",\"template\":{\"spec\":{\"containers\":[{\"name\":"
        "\"w\"},{"
        "\"name\":\"s\"}]}}},\"status\":{\"attempt\":1}},\"nodes\":[{\"metadata\":{\"name\":\"n\"},\"status\":{"
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}],\"pods\":[" KILLED "]}");
    c->memory.looked_ms = c->view.gang.now_ms - 1000; // at that time, the container was still running
    const struct plan *p = group_case_decide(c);
    assert_false(says(p, &c->arena, "\"reason\":\"Restarting\""));
    int64_t day = 86400 * 1000LL;
    c->memory.waits[WAIT_KILLED] = p->waits[WAIT_KILLED];
    c->memory.waits[WAIT_KILLED].since_ms += day; // as observations_time does
    c->view.gang.now_ms += day + 58999;
    assert_false(says(group_case_decide(c), &c->arena, "\"reason\":\"Restarting\""));
    c->view.gang.now_ms++;
    assert_true(says(group_case_decide(c), &c->arena, "\"reason\":\"Restarting\""));
    group_case_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backoff_doubles_up_to_its_maximum),
        cmocka_unit_test(backoff_differs_from_group_to_group),
        cmocka_unit_test(backoff_knows_its_limits),
        cmocka_unit_test(counters_stop_at_the_end_of_their_range),
        cmocka_unit_test(more_gpus_than_there_can_be_are_only_many),
        cmocka_unit_test(long_messages_are_cut_between_characters),
        cmocka_unit_test(a_status_is_written_for_the_version_that_was_read),
        cmocka_unit_test(a_killed_container_is_waited_for_by_our_own_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
