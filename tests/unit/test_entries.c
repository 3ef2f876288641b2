// SPDX-License-Identifier: Apache-2.0
#include "operator/exec/entries.h"

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
} t;

static int setup(void **state)
{
    (void)state;
    t.loop = loop_new();
    t.cluster = cluster_new();
    t.all = (struct entries){.waiting = waiting_new(t.loop, t.cluster), .clock = loop_clock(t.loop), .word = "group"};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    entries_done(&t.all);
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
    assert_int_equal(entry(0)->notebook.memory.status_wanted_ms, 1000);
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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_crowd_that_thins_is_remembered_by_who_still_waits),
        T(what_waits_anew_knows_the_crowd_of_now),
        T(another_object_of_the_name_has_waited_in_no_crowd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
