// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/reconciler.h"

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

enum { ENTRIES = 10 };

static struct {
    struct loop *loop;
    struct store *stores[KIND_COUNT];
    struct controller_shared shared;
    struct reconciler all;
    const char *waits;        // the status of this object waits; "*" = all; NULL = none
    bool writes;              // a plan contains one write, and the test answers it
    bool goes_on;             // a plan asks for the next decision at once
    const char *refusal;      // the refusal in the observations at the last decision
    int32_t waiting_statuses; // how many statuses wait, as told to the last decision
    int decisions;
} t;

static void decide(void *ctx, const struct object *o, const struct gang_view *gang, struct arena *a, struct plan *ret)
{
    (void)ctx;
    t.decisions++;
    t.refusal = gang->memory->refusal_reason;
    t.waiting_statuses = gang->waiting_statuses;
    plan_init(ret, a);
    ret->defers_status = str_eq(t.waits, "*") || str_eq(t.waits, o->meta.name);
    if (t.goes_on)
        ret->requeue_ms = 0;
    if (t.writes)
        plan_add_status(ret, STAGE_FIRST, "{}", NULL);
}

static void note(void *ctx, const struct object *o, struct observations *n, const struct plan *p, int64_t now_ms)
{
    (void)ctx, (void)o, (void)n, (void)p, (void)now_ms;
}

static void put_group(const char *name, const char *uid)
{
    static int version;
    char json[512];
    snprintf(json, sizeof json,
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ml\",\"uid\":\"%s\",\"resourceVersion\":\"%d\"},\"spec\":{"
             "\"template\":{\"spec\":{\"containers\":[{\"name\":\"w\",\"image\":\"i\"}]}}}}",
             name, uid, ++version);
    store_put_json(t.stores[KIND_WORKERGROUP], json);
}

static int setup(void **state)
{
    (void)state;
    memset(&t, 0, sizeof t);
    t.loop = loop_new();
    stores_new(t.stores);
    const struct clock *clock = loop_clock(t.loop);
    struct cluster *cluster = cluster_new();
    t.shared = (struct controller_shared){.executor = {.client = stub_client_new(t.loop),
                                                       .stores = t.stores,
                                                       .cluster = cluster,
                                                       .dryruns = dryruns_new(clock),
                                                       .clock = clock},
                                          .waiting = waiting_gangs_new(t.loop, cluster),
                                          .time = {.clock = clock, .cluster = cluster}};
    reconciler_init(&t.all, t.loop,
                    &(struct reconciler_options){
                        .kind = KIND_WORKERGROUP, .shared = &t.shared, .seed = 1, .plan = decide, .note = note});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    reconciler_stop(&t.all);
    stub_client_cancel(t.shared.executor.client);
    reconciler_done(&t.all);
    stub_client_free(t.shared.executor.client);
    waiting_gangs_free(t.shared.waiting);
    dryruns_free(t.shared.executor.dryruns);
    cluster_free(t.shared.executor.cluster);
    stores_free(t.stores);
    loop_free(t.loop);
    return 0;
}

// Turns the loop until so many more decisions were made.
static void turn(int decisions)
{
    for (int goal = t.decisions + decisions; t.decisions < goal;)
        loop_run_once(t.loop, 1000);
}

static const struct reconciler_entry *reconciler_entry(int i)
{
    char key[16];
    snprintf(key, sizeof key, "ml/g%d", i);
    return reconciler_find(&t.all, key);
}

static void decide_about(int i)
{
    char name[16];
    snprintf(name, sizeof name, "g%d", i);
    reconciler_wake(&t.all, "ml", name);
    turn(1);
}

static int32_t waiting_statuses_seen_by(int i)
{
    decide_about(i);
    return t.waiting_statuses;
}

// All objects wait, and then only the first one still waits.
static void write_all_but_one(void)
{
    char name[16];
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(name, sizeof name, "g%d", i);
        put_group(name, name);
    }
    t.waits = "*";
    reconciler_start(&t.all);
    turn(ENTRIES);
    t.waits = "g0";
    reconciler_look(&t.all);
    turn(ENTRIES);
}

static void the_largest_number_of_waiting_statuses_is_remembered_by_one_that_still_waits(void **state)
{
    (void)state;
    write_all_but_one();
    int64_t since_ms = reconciler_entry(0)->observations.memory.status_wanted_ms;
    assert_int_not_equal(since_ms, 0);
    assert_int_equal(waiting_statuses_seen_by(0), ENTRIES);
    assert_int_equal(reconciler_entry(0)->observations.memory.status_wanted_ms, since_ms);
    assert_int_equal(waiting_statuses_seen_by(1), 1);
}

static void a_status_that_waits_again_counts_those_that_wait_now(void **state)
{
    (void)state;
    write_all_but_one();
    t.waits = NULL;
    decide_about(0);
    t.waits = "*";
    decide_about(0);
    assert_int_equal(waiting_statuses_seen_by(0), 1);
    decide_about(1);
    assert_int_equal(waiting_statuses_seen_by(0), 2);
}

static void another_object_of_the_name_has_not_waited(void **state)
{
    (void)state;
    write_all_but_one();
    put_group("g0", "new");
    t.waits = NULL;
    assert_int_equal(waiting_statuses_seen_by(0), 0);
}

static void on_excluded(void *ctx, const char *ns, const char *pod)
{
    (void)ctx, (void)ns, (void)pod;
}

static struct stub_call *in_execution(void)
{
    put_group("g", "u");
    t.writes = true;
    reconciler_start(&t.all);
    return stub_next(t.shared.executor.client);
}

static void nothing_is_decided_before_the_start_and_all_at_the_start(void **state)
{
    (void)state;
    put_group("g", "u");
    reconciler_wake(&t.all, "ml", "g");
    assert_true(stub_quiet(t.shared.executor.client));
    assert_int_equal(t.decisions, 0);
    stub_answer(in_execution(), 200, "{}");
    assert_int_equal(t.decisions, 1);
}

static void what_was_noted_is_forgotten_with_the_term(void **state)
{
    (void)state;
    stub_answer(in_execution(), 200, "{}");
    assert_non_null(reconciler_find(&t.all, "ml/g"));
    reconciler_stop(&t.all);
    assert_null(reconciler_find(&t.all, "ml/g"));
    assert_null(map_get(&t.all.map, "ml/g")); // not only when it leads again, which may never happen
    assert_int_equal(t.all.waiting_statuses, 0);
}

static void a_plan_that_outlives_its_term_leaves_no_notes_to_the_next_one(void **state)
{
    (void)state;
    t.goes_on = true; // the next decision may change that
    struct stub_call *write = in_execution();
    struct reconciler_entry *e = map_get(&t.all.map, "ml/g");
    observations_refused(&e->observations, 1, "QuotaExceeded", "no more pods", 1000);
    reconciler_stop(&t.all);
    assert_null(reconciler_find(&t.all, "ml/g"));
    reconciler_start(&t.all);
    assert_null(reconciler_find(&t.all, "ml/g"));
    stub_answer(write, 200, "{}");
    assert_int_equal(t.decisions, 1);
    assert_null(map_get(&t.all.map, "ml/g"));
    t.goes_on = false;
    write = stub_next(t.shared.executor.client);
    assert_int_equal(t.decisions, 2);
    assert_null(t.refusal);
    assert_non_null(reconciler_find(&t.all, "ml/g"));
    stub_answer(write, 200, "{}");
}

static void nothing_is_noted_where_another_installation_decides(void **state)
{
    (void)state;
    struct excluded_namespaces *excluded = excluded_namespaces_new(t.loop, t.stores[KIND_POD], 1, on_excluded, NULL);
    t.shared.excluded = excluded;
    stub_answer(in_execution(), 200, "{}");
    store_put_json(t.stores[KIND_POD],
                   "{\"metadata\":{\"name\":\"op\",\"namespace\":\"ml\",\"uid\":\"u\",\"resourceVersion\":\"1\","
                   "\"labels\":{\"app.kubernetes.io/part-of\":\"cadre\",\"app.kubernetes.io/component\":"
                   "\"operator\",\"cadre.dev/watches\":\"ml\"}},\"status\":{\"phase\":\"Running\"}}");
    reconciler_wake(&t.all, "ml", "g");
    while (reconciler_find(&t.all, "ml/g"))
        loop_run_once(t.loop, 1000);
    assert_int_equal(t.decisions, 1);
    assert_true(controller_idle(t.all.controller));
    excluded_namespaces_free(excluded);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_largest_number_of_waiting_statuses_is_remembered_by_one_that_still_waits),
        T(a_status_that_waits_again_counts_those_that_wait_now),
        T(another_object_of_the_name_has_not_waited),
        T(nothing_is_decided_before_the_start_and_all_at_the_start),
        T(what_was_noted_is_forgotten_with_the_term),
        T(a_plan_that_outlives_its_term_leaves_no_notes_to_the_next_one),
        T(nothing_is_noted_where_another_installation_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
