// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/gang_place.h"

#include "common/base/mem.h"
#include "common/base/str.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/support/placement_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MINUTE = 60 * 1000, DAY = 24 * 60 * MINUTE };

static struct line *line;
static struct arena arena;
static struct plan plan;
static struct placement placed;
static int64_t now_ms;

static int setup(void **state)
{
    (void)state;
    line = line_new();
    now_ms = DAY;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    line_free(line);
    arena_done(&arena);
    return 0;
}

static struct object owner(const char *name, int64_t created_ms)
{
    return (struct object){.kind = KIND_WORKERGROUP,
                           .meta = {.name = name, .ns = "ml", .uid = name, .created_ms = created_ms}};
}

// Plans the only gang of the world, for this owner, and tells the line.
static void decide(struct world *w, struct line *l, const struct object *o, const struct condition *scheduled)
{
    struct gang g = w->gangs[0]->gang;
    struct gang_place_request r = {
        .cluster = w->cluster, .line = l, .owner = o, .scheduled = scheduled, .now_ms = now_ms};
    plan_init(&plan, &arena);
    gang_place(&r, &g, &arena, &plan, &placed);
    if (l)
        line_tell(l, plan.line, now_ms);
    if (placed.verdict != VERDICT_PLACED)
        placed.message = gang_place_message(&r, &g, &placed, &arena);
}

static void a_gang_that_waits_is_told_who_is_ahead_and_looks_again(void **state)
{
    (void)state;
    struct object first = owner("first", 1), second = owner("second", 2);
    struct world *w = world_new("node n1 gpu=4\npod a on=n1 gpu=3 group=llama\ngang Pack\nbundles 2 gpu=1\n");
    decide(w, line, &first, NULL);
    assert_int_equal(placed.verdict, VERDICT_INSUFFICIENT);
    assert_int_equal(plan.requeue_ms, LINE_PATIENCE_MS);
    decide(w, line, &second, NULL);
    assert_string_equal(placed.message, "needs 2 x 1 free nvidia.com/gpu, found 1; 1 of 1 node has room\n"
                                        "in use there: 3 of 4 nvidia.com/gpu, 3 by WorkerGroup ml/llama\n"
                                        "these wait ahead of it: WorkerGroup ml/first since 1970-01-02T00:00:00Z");
    world_free(w);
}

static void how_long_it_waits_is_known_from_its_condition(void **state)
{
    (void)state;
    struct object big = owner("big", 1), small = owner("small", 2);
    struct world *w = world_new("node n1 gpu=4\npod a on=n1 gpu=3 group=llama\ngang Pack\nbundles 2 gpu=1\n");
    const struct condition waits = {COND_SCHEDULED, CONDITION_FALSE, REASON_INSUFFICIENT, "",
                                    .changed_ms = now_ms - LINE_PATIENCE_MS};
    const struct condition backoff = {COND_SCHEDULED, CONDITION_FALSE, REASON_BACKOFF, "", .changed_ms = 1};
    decide(w, line, &small, &backoff);
    assert_int_equal(plan.line->since_ms, now_ms);
    line_leave(line, "small");
    decide(w, line, &big, &waits); // by a new leader: the gang is in the line from now on
    assert_int_equal(plan.requeue_ms, 0);
    decide(w, line, &big, &waits);
    assert_int_equal(plan.line->n_hold, 1);
    assert_string_equal(plan.line->hold[0], "n1");
    world_free(w);
}

static void a_node_that_is_lost_is_not_held_any_more(void **state)
{
    (void)state;
    struct object big = owner("big", 1);
    struct world *w =
        world_new("node n1 gpu=4 used.gpu=1\nnode n2 gpu=4 used.gpu=2\ngang StrictPack\nbundles 4 gpu=1\n");
    decide(w, line, &big, NULL);
    now_ms += LINE_PATIENCE_MS;
    decide(w, line, &big, NULL);
    assert_string_equal(plan.line->hold[0], "n1");
    cluster_del_node(w->cluster, "n1");
    decide(w, line, &big, NULL);
    assert_string_equal(plan.line->hold[0], "n2");
    assert_int_equal(plan.line->n_hold, 1);
    world_free(w);
}

enum { SLOTS = 16, LENGTH = 30 * MINUTE };

// Whenever a small gang has ended, another one comes.
static void small_ones_come(struct world *w, struct line *l, int64_t *ends, int64_t begun)
{
    for (int i = 0; i < SLOTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        struct object o = owner(name, now_ms);
        if (ends[i] > now_ms)
            continue;
        cluster_del_pod(w->cluster, "ml", name);
        decide(w, l, &o, NULL);
        if (placed.verdict != VERDICT_PLACED) {
            if (l)
                line_leave(l, name); // a new one comes
            continue;
        }
        struct pod *pod = build_pod(name, placed.nodes[0], "gpu=1 pods=1");
        cluster_set_pod(w->cluster, pod);
        object_unref(&pod->obj);
        ends[i] = now_ms + LENGTH - (now_ms == begun ? i * MINUTE : 0); // not all at the same time
    }
}

// Small gangs that run for half an hour come as fast as they find room, and one gang comes that needs a whole node.
// Returns how long it waits, at most two days.
static int64_t waits_beside_small_ones(struct line *l)
{
    struct world *small = world_new("node n1 gpu=8\nnode n2 gpu=8\ngang Pack\nbundles 1 gpu=1\n");
    struct world *big = world_new("gang StrictPack\nbundles 8 gpu=1\n");
    struct cluster *own = big->cluster;
    struct object big_one = owner("big", 1);
    int64_t ends[SLOTS] = {0}, begun = now_ms, came = now_ms + 100 * MINUTE;
    big->cluster = small->cluster;
    for (; now_ms - begun < 2 * DAY; now_ms += MINUTE) {
        small_ones_come(small, l, ends, begun);
        if (now_ms < came)
            continue;
        decide(big, l, &big_one, NULL);
        if (placed.verdict == VERDICT_PLACED)
            break;
    }
    big->cluster = own;
    world_free(small);
    world_free(big);
    return now_ms - came;
}

static void small_gangs_do_not_starve_a_big_one(void **state)
{
    (void)state;
    assert_true(waits_beside_small_ones(NULL) > DAY);
    now_ms = DAY;
    assert_in_range(waits_beside_small_ones(line), LINE_PATIENCE_MS, 120 * MINUTE);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_gang_that_waits_is_told_who_is_ahead_and_looks_again),
        T(how_long_it_waits_is_known_from_its_condition),
        T(a_node_that_is_lost_is_not_held_any_more),
        T(small_gangs_do_not_starve_a_big_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
