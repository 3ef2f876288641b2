// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/support/placement_builder.h"

#include "common/base/mem.h"
#include "operator/placement/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static int setup(void **state)
{
    *state = cluster_new();
    return 0;
}

static int teardown(void **state)
{
    cluster_free(*state);
    return 0;
}

static void set_node(struct cluster *c, const char *name, const char *words)
{
    struct node *n = build_node(name, words);
    cluster_set_node(c, n);
    object_unref(&n->obj);
}

static void set_pod(struct cluster *c, const char *name, const char *node, const char *amounts)
{
    struct pod *p = build_pod(name, node, amounts);
    cluster_set_pod(c, p);
    object_unref(&p->obj);
}

static void set_pod_in_phase(struct cluster *c, const char *name, const char *node, enum pod_phase phase)
{
    struct pod *p = build_pod(name, node, "gpu=1");
    p->phase = phase;
    cluster_set_pod(c, p);
    object_unref(&p->obj);
}

static void assume(struct cluster *c, const char *name, const char *node, const char *amounts)
{
    struct arena a = ARENA_INIT;
    struct resources r = build_amounts(amounts, &a);
    cluster_assume(c, "ml", name, node, &r);
    arena_done(&a);
}

static int64_t used(const struct cluster *c, const char *node, int resource_id)
{
    const struct room *r = cluster_room(c, node);
    return r ? room_used(r, resource_id) : 0;
}

static int64_t gpus_used(const struct cluster *c, const char *node)
{
    return used(c, node, RESOURCE_GPU) / 1000;
}

// After an outage of the API server, nodes are called not ready until their kubelets have reported again.
static void a_node_is_not_silent_while_the_api_server_is_just_back(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8 notready");
    cluster_note_silence(c, "n1", 1000000);
    assert_int_equal(cluster_silent_ms(c, "n1"), 1000000);
    cluster_note_outage(c, 2000000 - CLUSTER_OUTAGE_MS + 1, 2000000); // one request has failed
    assert_int_equal(cluster_silent_ms(c, "n1"), 1000000);
    cluster_note_outage(c, 2000000 - CLUSTER_OUTAGE_MS, 2000000);
    assert_int_equal(cluster_silent_ms(c, "n1"), 2000000 + CLUSTER_REPORT_MS);
    cluster_clock_moved(c, 500);
    assert_int_equal(cluster_silent_ms(c, "n1"), 2000500 + CLUSTER_REPORT_MS);
    cluster_note_silence(c, "n1", 3000000); // later: the silence of the node itself
    assert_int_equal(cluster_silent_ms(c, "n1"), 3000000);
}

static void pods_take_room_and_give_it_back(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8 cpu=64");
    set_pod(c, "a", "n1", "gpu=2 cpu=500m");
    set_pod(c, "b", "n1", "gpu=1");
    assert_int_equal(gpus_used(c, "n1"), 3);
    assert_int_equal(used(c, "n1", RESOURCE_CPU), 500);
    cluster_del_pod(c, "ml", "a");
    cluster_del_pod(c, "ml", "a");
    cluster_del_pod(c, "ml", "stranger");
    assert_int_equal(gpus_used(c, "n1"), 1);
    assert_int_equal(used(c, "n1", RESOURCE_CPU), 0);
    assert_int_equal(gpus_used(c, "n2"), 0);
}

static void a_pod_seen_again_replaces_itself(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pod(c, "a", "n1", "gpu=2");
    set_pod(c, "a", "n1", "gpu=2");
    set_pod(c, "a", "n1", "gpu=5");
    assert_int_equal(gpus_used(c, "n1"), 5);
}

static void a_pinned_pod_counts_on_its_pin_until_it_is_bound(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_node(c, "n2", "gpu=8");
    struct pod *p = build_pod("a", NULL, "gpu=2");
    p->pin = "n2";
    p->phase = POD_PENDING;
    cluster_set_pod(c, p);
    object_unref(&p->obj);
    assert_int_equal(gpus_used(c, "n2"), 2);
    set_pod(c, "a", "n1", "gpu=2");
    assert_int_equal(gpus_used(c, "n1"), 2);
    assert_int_equal(gpus_used(c, "n2"), 0);
}

static void set_pinned(struct cluster *c, const char *name, const char *amounts, bool ours)
{
    static struct label group = {"cadre.dev/group", "g"};
    struct pod *p = build_pod(name, NULL, amounts);
    p->pin = "n1";
    p->phase = POD_PENDING;
    p->obj.meta.labels = ours ? (struct labels){&group, 1} : (struct labels){0};
    cluster_set_pod(c, p);
    object_unref(&p->obj);
}

static void a_pinned_pod_that_can_never_be_bound_takes_nothing(void **state)
{
    struct cluster *c = *state;
    set_pinned(c, "huge", "gpu=1000", false); // its node is not known yet
    set_pinned(c, "label", "gpu=1000", true); // anybody can set the label
    set_node(c, "n1", "gpu=8");
    assert_int_equal(gpus_used(c, "n1"), 0);
    cluster_del_node(c, "n1");
    cluster_del_pod(c, "ml", "huge");
    set_node(c, "n1", "gpu=2000"); // the node has grown
    assert_int_equal(gpus_used(c, "n1"), 1000);
}

static void a_pinned_pod_of_another_takes_only_what_the_others_leave(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pinned(c, "a", "gpu=6", false);
    assert_int_equal(gpus_used(c, "n1"), 6);
    uint64_t before = cluster_epoch(c);
    set_pod(c, "b", "n1", "gpu=3"); // bound: now the first one cannot be
    assert_int_equal(gpus_used(c, "n1"), 3);
    assert_true(cluster_epoch(c) > before);
    before = cluster_epoch(c);
    set_pinned(c, "c", "gpu=5", false);
    assert_int_equal(gpus_used(c, "n1"), 8);
    assert_true(cluster_epoch(c) == before);
    cluster_del_pod(c, "ml", "c");
    cluster_del_pod(c, "ml", "b");
    assert_int_equal(gpus_used(c, "n1"), 6); // it fits again
    set_pod(c, "a", "n1", "gpu=6");
    assert_int_equal(gpus_used(c, "n1"), 6);
    cluster_del_pod(c, "ml", "a");
    assert_int_equal(gpus_used(c, "n1"), 0);
}

static void of_two_pinned_pods_an_update_does_not_change_which_one_counts(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8 cpu=8");
    set_pinned(c, "a", "gpu=6 cpu=2", false);
    set_pinned(c, "b", "gpu=4 cpu=4", false); // only one of them fits
    uint64_t before = cluster_epoch(c);
    set_pinned(c, "a", "gpu=6 cpu=2", false);
    assert_int_equal(gpus_used(c, "n1"), 6);
    assert_int_equal(used(c, "n1", RESOURCE_CPU), 2000);
    assert_true(cluster_epoch(c) == before);
    set_pinned(c, "b", "gpu=4 cpu=4", false);
    assert_int_equal(gpus_used(c, "n1"), 6);
    assert_true(cluster_epoch(c) == before);
    cluster_del_pod(c, "ml", "a");
    assert_int_equal(gpus_used(c, "n1"), 4);
}

static void a_pinned_pod_that_no_longer_counts_after_its_own_update_makes_room(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pinned(c, "a", "gpu=6", true);
    set_pinned(c, "b", "gpu=4", true);
    assert_int_equal(gpus_used(c, "n1"), 10);
    uint64_t before = cluster_epoch(c);
    set_pinned(c, "b", "gpu=4", false); // it has lost its label
    assert_int_equal(gpus_used(c, "n1"), 6);
    assert_true(cluster_epoch(c) > before);
}

// The gang was planned as if pods of lower priority were gone.
static void a_pinned_pod_of_a_gang_takes_its_room_while_others_are_evicted(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pod(c, "low", "n1", "gpu=8");
    set_pinned(c, "foreign", "gpu=2", false);
    set_pinned(c, "g-0", "gpu=8", true);
    assert_int_equal(gpus_used(c, "n1"), 16);
    cluster_del_pod(c, "ml", "low");
    assert_int_equal(gpus_used(c, "n1"), 8);
}

static void a_pod_that_is_nowhere_takes_nothing(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pod(c, "a", NULL, "gpu=2");
    assert_int_equal(gpus_used(c, "n1"), 0);
}

static void a_terminal_pod_takes_nothing(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pod_in_phase(c, "a", "n1", POD_RUNNING);
    set_pod_in_phase(c, "b", "n1", POD_UNKNOWN);
    set_pod_in_phase(c, "c", "n1", POD_PENDING);
    assert_int_equal(gpus_used(c, "n1"), 3);
    set_pod_in_phase(c, "a", "n1", POD_SUCCEEDED);
    set_pod_in_phase(c, "b", "n1", POD_FAILED);
    assert_int_equal(gpus_used(c, "n1"), 1);
}

static void a_terminating_pod_holds_its_room_until_it_is_gone(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    struct pod *p = build_pod("a", "n1", "gpu=4");
    p->obj.meta.deleted_ms = 1;
    cluster_set_pod(c, p);
    object_unref(&p->obj);
    assert_int_equal(gpus_used(c, "n1"), 4);
    cluster_del_pod(c, "ml", "a");
    assert_int_equal(gpus_used(c, "n1"), 0);
}

static void an_assumed_pod_counts_once_when_the_watch_shows_it(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    assume(c, "a", "n1", "gpu=2");
    assert_int_equal(gpus_used(c, "n1"), 2);
    set_pod(c, "a", "n1", "gpu=2");
    assert_int_equal(gpus_used(c, "n1"), 2);
    cluster_del_pod(c, "ml", "a");
    assert_int_equal(gpus_used(c, "n1"), 0);
}

static void an_assumption_can_be_taken_back(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    assume(c, "a", "n1", "gpu=2");
    cluster_unassume(c, "ml", "a");
    assert_int_equal(gpus_used(c, "n1"), 0);
}

static void what_the_watch_has_shown_wins_over_assumptions(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "gpu=8");
    set_pod(c, "a", "n1", "gpu=3");
    assume(c, "a", "n1", "gpu=2");
    assert_int_equal(gpus_used(c, "n1"), 3);
    cluster_unassume(c, "ml", "a");
    assert_int_equal(gpus_used(c, "n1"), 3);
}

static void pods_of_a_node_that_is_not_there_are_remembered(void **state)
{
    struct cluster *c = *state;
    set_pod(c, "a", "n1", "gpu=3");
    assert_int_equal(cluster_nodes(c), 0);
    assert_null(cluster_node(c, "n1"));
    set_node(c, "n1", "gpu=8");
    assert_int_equal(gpus_used(c, "n1"), 3);
    cluster_del_node(c, "n1");
    assert_int_equal(cluster_nodes(c), 0);
    set_node(c, "n1", "gpu=4");
    assert_int_equal(gpus_used(c, "n1"), 3);
    assert_int_equal(cluster_nodes(c), 1);
}

static void a_node_can_change_what_it_has(void **state)
{
    struct cluster *c = *state;
    struct arena a = ARENA_INIT;
    struct resources one = build_amounts("gpu=1", &a), none = {0};
    set_node(c, "n1", "gpu=4");
    set_pod(c, "a", "n1", "gpu=3");
    assert_int_equal(room_fit(cluster_rooms(c)[0], false, &none, &one), 1);
    set_node(c, "n1", "gpu=8");
    assert_int_equal(room_fit(cluster_rooms(c)[0], false, &none, &one), 5);
    assert_int_equal(room_fit(cluster_rooms(c)[0], true, &none, &one), 8);
    set_node(c, "n1", "gpu=2"); // devices were lost, so the node is overcommitted now
    assert_int_equal(room_fit(cluster_rooms(c)[0], false, &none, &one), 0);
    arena_done(&a);
}

static void absurd_amounts_leave_no_trace(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "memory=1Gi");
    set_pod(c, "a", "n1", "memory=8000Pi");
    set_pod(c, "b", "n1", "memory=8000Pi");
    set_pod(c, "c", "n1", "memory=1Mi");
    assert_int_equal(used(c, "n1", RESOURCE_MEMORY), INT64_MAX);
    cluster_del_pod(c, "ml", "a");
    cluster_del_pod(c, "ml", "b");
    assert_int_equal(used(c, "n1", RESOURCE_MEMORY), INT64_C(1000) << 20);
}

static void resources_seen_late_are_counted_too(void **state)
{
    struct cluster *c = *state;
    set_node(c, "n1", "cpu=4");
    set_pod(c, "a", "n1", "example.com/seen-late=2");
    assert_int_equal(used(c, "n1", resource_id("example.com/seen-late")), 2000);
}

static void nodes_come_in_natural_order(void **state)
{
    struct cluster *c = *state;
    const char *const met[] = {"n10", "n2", "m1", "n1"}, *const sorted[] = {"m1", "n1", "n2", "n10"};
    for (size_t i = 0; i < ARRAY_LEN(met); i++)
        set_node(c, met[i], "cpu=1");
    assert_int_equal(cluster_nodes(c), ARRAY_LEN(sorted));
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        assert_string_equal(cluster_rooms(c)[i]->name, sorted[i]);
    cluster_del_node(c, "n1");
    cluster_del_node(c, "n1");
    assert_int_equal(cluster_nodes(c), 3);
    assert_string_equal(cluster_rooms(c)[1]->name, "n2");
}

static bool grew(const struct cluster *c, uint64_t *epoch)
{
    uint64_t before = *epoch;
    *epoch = cluster_epoch(c);
    return *epoch > before;
}

static void the_epoch_grows_when_room_may_have_appeared_or_a_node_goes(void **state)
{
    struct cluster *c = *state;
    uint64_t e = cluster_epoch(c);
    set_node(c, "n1", "gpu=8 rack=a");
    assert_true(grew(c, &e));
    set_node(c, "n1", "gpu=8 rack=a"); // a heartbeat
    assert_false(grew(c, &e));
    static const char *const changes[] = {"gpu=7 rack=a",
                                          "gpu=7 rack=b",
                                          "gpu=7",
                                          "gpu=7 cordoned",
                                          "gpu=7 notready",
                                          "gpu=7 taint=a=b:NoSchedule",
                                          "gpu=7 taint=a=b:NoExecute"};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        set_node(c, "n1", changes[i]);
        assert_true(grew(c, &e));
    }

    assume(c, "a", "n1", "gpu=2");
    set_pod(c, "a", "n1", "gpu=2"); // it was created, bound, and runs: no room has become free
    set_pod(c, "a", "n1", "gpu=2");
    assert_false(grew(c, &e));
    set_pod(c, "a", "n1", "gpu=1");
    assert_true(grew(c, &e));
    set_pod_in_phase(c, "a", "n1", POD_FAILED);
    assert_true(grew(c, &e));
    cluster_del_pod(c, "ml", "a"); // it did not count any more
    assert_false(grew(c, &e));
    cluster_del_node(c, "n1"); // the gangs that wait for room get another message
    assert_true(grew(c, &e));
    cluster_del_node(c, "n1");
    assert_false(grew(c, &e));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(pods_take_room_and_give_it_back),
        TEST(a_node_is_not_silent_while_the_api_server_is_just_back),
        TEST(a_pod_seen_again_replaces_itself),
        TEST(a_pinned_pod_counts_on_its_pin_until_it_is_bound),
        TEST(a_pinned_pod_that_can_never_be_bound_takes_nothing),
        TEST(a_pinned_pod_of_another_takes_only_what_the_others_leave),
        TEST(of_two_pinned_pods_an_update_does_not_change_which_one_counts),
        TEST(a_pinned_pod_that_no_longer_counts_after_its_own_update_makes_room),
        TEST(a_pinned_pod_of_a_gang_takes_its_room_while_others_are_evicted),
        TEST(a_pod_that_is_nowhere_takes_nothing),
        TEST(a_terminal_pod_takes_nothing),
        TEST(a_terminating_pod_holds_its_room_until_it_is_gone),
        TEST(an_assumed_pod_counts_once_when_the_watch_shows_it),
        TEST(an_assumption_can_be_taken_back),
        TEST(what_the_watch_has_shown_wins_over_assumptions),
        TEST(pods_of_a_node_that_is_not_there_are_remembered),
        TEST(a_node_can_change_what_it_has),
        TEST(absurd_amounts_leave_no_trace),
        TEST(resources_seen_late_are_counted_too),
        TEST(nodes_come_in_natural_order),
        TEST(the_epoch_grows_when_room_may_have_appeared_or_a_node_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
