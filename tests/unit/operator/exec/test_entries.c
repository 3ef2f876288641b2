// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/entries.h"

#include "tests/unit/operator/exec/store_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

enum { ENTRIES = 10 };

static struct {
    struct loop *loop;
    struct cluster *cluster;
    struct entries all;
    struct entry *decided; // about this one, last
    int decisions;
} t;

static void plan(struct entry *e, bool defers_status, int64_t now_ms);

static void decide(void *ctx, const char *key)
{
    (void)ctx;
    t.decided = entries_get(&t.all, key, "uid");
    t.decisions++;
    plan(t.decided, true, 1000);
}

static int setup(void **state)
{
    (void)state;
    t.loop = loop_new();
    t.cluster = cluster_new();
    t.decided = NULL;
    t.decisions = 0;
    t.all = (struct entries){.waiting = waiting_new(t.loop, t.cluster),
                             .clock = loop_clock(t.loop),
                             .word = "group",
                             .kind = "WorkerGroup",
                             .decide = decide};
    t.all.controller =
        controller_new(t.loop, &(struct controller_options){.reconcile = entries_reconcile, .ctx = &t.all});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    entries_done(&t.all);
    controller_free(t.all.controller);
    waiting_free(t.all.waiting);
    cluster_free(t.cluster);
    loop_free(t.loop);
    return 0;
}

static struct entry *entry(int i)
{
    char key[16];
    snprintf(key, sizeof key, "ml/g%d", i);
    return entries_get(&t.all, key, key);
}

static void plan(struct entry *e, bool defers_status, int64_t now_ms)
{
    struct arena a = ARENA_INIT;
    struct plan p;
    plan_init(&p, &a);
    p.defers_status = defers_status;
    entry_planned(e, &p, now_ms, &a);
    arena_done(&a);
}

// All wait, and then only the first still does.
static void thin_the_crowd(void)
{
    for (int i = 0; i < ENTRIES; i++)
        plan(entry(i), true, 1000);
    plan(entry(0), true, 1500);
    for (int i = 1; i < ENTRIES; i++)
        plan(entry(i), false, 2000);
}

static void a_crowd_that_thins_is_remembered_by_who_still_waits(void **state)
{
    (void)state;
    thin_the_crowd();
    assert_int_equal(entry_crowd(entry(0)), ENTRIES);
    assert_int_equal(entry(0)->observations.memory.status_wanted_ms, 1000);
    assert_int_equal(entry_crowd(entry(1)), 1);
}

static void what_waits_anew_knows_the_crowd_of_now(void **state)
{
    (void)state;
    thin_the_crowd();
    plan(entry(0), false, 2000);
    plan(entry(0), true, 3000);
    assert_int_equal(entry_crowd(entry(0)), 1);
    plan(entry(1), true, 3000);
    assert_int_equal(entry_crowd(entry(0)), 2);
}

static void another_object_of_the_name_has_waited_in_no_crowd(void **state)
{
    (void)state;
    thin_the_crowd();
    assert_int_equal(entry_crowd(entries_get(&t.all, "ml/g0", "new")), 0);
}

static void on_territory(void *ctx, const char *ns, const char *pod)
{
    (void)ctx, (void)ns, (void)pod;
}

// The key was given out, and its plan is in execution.
static struct entry *in_execution(void)
{
    int before = t.decisions;
    controller_start(t.all.controller);
    controller_add(t.all.controller, "ml/g");
    while (t.decisions == before)
        loop_run_once(t.loop, 1000);
    return t.decided;
}

static void executed(struct entry *e)
{
    struct err none = ERR_INIT;
    e->requeue_ms = -1;
    entry_executed(e, &none);
}

static void what_was_noted_is_forgotten_with_the_term(void **state)
{
    (void)state;
    executed(in_execution());
    assert_non_null(entries_find(&t.all, "ml/g"));
    entries_stop(&t.all);
    assert_null(entries_find(&t.all, "ml/g"));
    assert_null(map_get(&t.all.map, "ml/g")); // not only when it leads again, which may be never
    assert_int_equal(t.all.moving, 0);
}

static void a_plan_that_outlives_its_term_leaves_no_notes_to_the_next_one(void **state)
{
    (void)state;
    struct entry *e = in_execution();
    observations_refused(&e->observations, 1, "QuotaExceeded", "no more pods", 1000);
    entries_stop(&t.all);
    assert_null(entries_find(&t.all, "ml/g"));
    entries_start(&t.all);
    assert_null(entries_find(&t.all, "ml/g"));
    e->goes_on = true; // which is for the next decision to say
    executed(e);
    assert_int_equal(t.decisions, 1);
    assert_null(map_get(&t.all.map, "ml/g"));
    e = in_execution();
    assert_int_equal(t.decisions, 2);
    assert_null(e->observations.memory.refusal_reason);
    assert_non_null(entries_find(&t.all, "ml/g"));
    executed(e);
}

static void nothing_is_noted_where_another_installation_decides(void **state)
{
    struct store *pods = store_new(KIND_POD);
    (void)state;
    t.all.territory = territory_new(t.loop, pods, 1, on_territory, NULL);
    executed(in_execution());
    store_put_json(pods, "{\"metadata\":{\"name\":\"op\",\"namespace\":\"ml\",\"uid\":\"u\",\"resourceVersion\":\"1\","
                         "\"labels\":{\"app.kubernetes.io/part-of\":\"cadre\",\"app.kubernetes.io/component\":"
                         "\"operator\",\"cadre.dev/watches\":\"ml\"}},\"status\":{\"phase\":\"Running\"}}");
    controller_add(t.all.controller, "ml/g");
    while (entries_find(&t.all, "ml/g"))
        loop_run_once(t.loop, 1000);
    assert_int_equal(t.decisions, 1);
    assert_true(controller_idle(t.all.controller));
    territory_free((struct territory *)t.all.territory);
    store_free(pods);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_crowd_that_thins_is_remembered_by_who_still_waits),
        T(what_waits_anew_knows_the_crowd_of_now),
        T(another_object_of_the_name_has_waited_in_no_crowd),
        T(what_was_noted_is_forgotten_with_the_term),
        T(a_plan_that_outlives_its_term_leaves_no_notes_to_the_next_one),
        T(nothing_is_noted_where_another_installation_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
