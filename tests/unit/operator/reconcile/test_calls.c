// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/calls.h"

#include "common/base/mem.h"
#include "operator/api/object_decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#define CONDITION(type, status, reason, generation)                         \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason \
    "\",\"message\":\"its message\",\"observedGeneration\":" generation "}"
#define REFUSED(scheduled) \
    "\"status\":{\"conditions\":[" CONDITION("Accepted", "False", "InvalidBundles", "3") "," scheduled "]}"
#define WAITS CONDITION("Scheduled", "False", "InvalidBundles", "3")

static const char *group(const char *meta, const char *spec, const char *status, struct arena *a)
{
    return arena_printf(a, "{\"metadata\":{\"name\":\"g\",\"generation\":3%s},\"spec\":{%s}%s%s}", meta, spec,
                        *status ? "," : "", status);
}

static const struct object *decode(const char *json)
{
    const struct object *o;
    struct err err = ERR_INIT;
    if (object_decode(KIND_WORKERGROUP, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return o;
}

static void a_group_that_does_not_get_ready_by_waiting_refuses_calls(void **state)
{
    static const struct {
        const char *meta, *spec, *status, *says; // NULL = calls may wait
    } cases[] = {
        {"", "", "", NULL},
        {",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "", "", "it is being deleted"},
        {"", "\"runtime\":\"Plain\"", "",
         "its runtime is Plain; calls need runtime Agent and a worker.module or worker.python"},
        {"", "\"suspend\":true", "", "it is suspended"},
        {"", "", "\"status\":{\"conditions\":[" CONDITION("Failed", "True", "WorkerFailed", "3") "]}",
         "it has failed: its message"},
        {"", "", "\"status\":{\"conditions\":[" CONDITION("Succeeded", "True", "Completed", "3") "]}",
         "all of its processes have succeeded"},
        {"", "", REFUSED(WAITS), "it is not accepted: InvalidBundles: its message"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena a = ARENA_INIT;
        const struct object *o = decode(group(cases[i].meta, cases[i].spec, cases[i].status, &a));
        const char *said = calls_refusal(workergroup_of(o), &a);
        if (!said != !cases[i].says || (said && strcmp(said, cases[i].says) != 0))
            fail_msg("case %zu: %s", i, said ? said : "calls wait");
        object_unref(o);
        arena_done(&a);
    }
}

static void calls_go_on_where_an_earlier_spec_runs_or_the_verdict_is_of_another_one(void **state)
{
    static const char *const statuses[] = {
        REFUSED(CONDITION("Scheduled", "True", "Bound", "2")),
        REFUSED(CONDITION("Scheduled", "False", "Insufficient", "3")),
        "\"status\":{\"conditions\":[" CONDITION("Accepted", "False", "InvalidBundles", "2") "," WAITS "]}",
        "\"status\":{\"conditions\":[" CONDITION("Accepted", "Unknown", "Checking", "3") "]}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct arena a = ARENA_INIT;
        const struct object *o = decode(group("", "", statuses[i], &a));
        assert_null(calls_refusal(workergroup_of(o), &a));
        object_unref(o);
        arena_done(&a);
    }
}

static void the_status_is_what_ready_says(void **state)
{
    static const char waits[] = "\"status\":{\"conditions\":[" CONDITION("Ready", "False", "Insufficient", "3") "]}";
    static const char runs[] = "\"status\":{\"conditions\":[" CONDITION("Ready", "True", "Running", "3") "]}";
    struct arena a = ARENA_INIT;
    const struct object *o = decode(group("", "", waits, &a)), *ready = decode(group("", "", runs, &a));
    (void)state;
    assert_string_equal(calls_status(workergroup_of(o), &a), "Insufficient: its message");
    assert_null(calls_status(workergroup_of(ready), &a));
    assert_string_equal(calls_reason(workergroup_of(o)), "Insufficient");
    assert_string_equal(calls_reason(workergroup_of(ready)), "Running");
    object_unref(o);
    object_unref(ready);
    arena_done(&a);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_that_does_not_get_ready_by_waiting_refuses_calls),
        cmocka_unit_test(calls_go_on_where_an_earlier_spec_runs_or_the_verdict_is_of_another_one),
        cmocka_unit_test(the_status_is_what_ready_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
