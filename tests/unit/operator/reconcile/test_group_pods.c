// SPDX-License-Identifier: Apache-2.0
#include "operator/reconcile/group_pods.h"

#include "common/base/mem.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/reason.h"
#include "tests/unit/support/placement_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

enum { NOW = 1000000, HASH = 0xabc, PODS = 16 };

// A group "g" of 3 replicas of 2 ranks, attempt 2, incarnation 5, on nodes n1 and n2, seen at time NOW in milliseconds.
struct fixture {
    struct arena arena;
    struct workergroup wg;
    struct gang_memory memory;
    struct cluster *cluster;
    struct pod pods[PODS];
    const struct pod *list[PODS];
    struct group_view view;
    struct group_pods taken;
};

static void set_node(struct fixture *f, const char *name, const char *words, int64_t changed_ms)
{
    struct node *n = build_node(name, words);
    n->ready_changed_ms = changed_ms;
    cluster_set_node(f->cluster, n);
    object_unref(&n->obj);
}

static int setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    f->wg.obj.meta.name = "g";
    f->wg.spec.runtime = RUNTIME_PLAIN;
    f->wg.spec.replicas = 3;
    f->wg.spec.workers_per_replica = 2;
    f->wg.spec.gang.node_lost_s = 60;
    f->wg.status.attempt = 2;
    f->wg.status.incarnation = 5;
    f->cluster = cluster_new();
    set_node(f, "n1", "gpu=8", 1);
    set_node(f, "n2", "gpu=8", 1);
    f->view = (struct group_view){
        .wg = &f->wg, .gang.pods = f->list, .gang.cluster = f->cluster, .gang.memory = &f->memory, .gang.now_ms = NOW};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    cluster_free(f->cluster);
    arena_done(&f->arena);
    free(f);
    return 0;
}

// A running pod with this index, on n1.
static struct pod *add(struct fixture *f, int attempt, int incarnation, int index)
{
    struct pod *p = &f->pods[f->view.gang.n_pods];
    f->list[f->view.gang.n_pods++] = p;
    struct label *labels = arena_array(&f->arena, 3, sizeof *labels);
    labels[0] = (struct label){LABEL_ATTEMPT, arena_printf(&f->arena, "%d", attempt)};
    labels[1] = (struct label){LABEL_INCARNATION, arena_printf(&f->arena, "%d", incarnation)};
    labels[2] = (struct label){LABEL_INDEX, arena_printf(&f->arena, "%d", index)};
    struct label *hash = arena_new(&f->arena, struct label);
    *hash = (struct label){ANNOTATION_SPEC_HASH, arena_printf(&f->arena, "%016x", HASH)};
    p->obj.meta.name = arena_printf(&f->arena, "g-%d-%d", index, incarnation);
    p->obj.meta.labels = (struct labels){labels, 3};
    p->obj.meta.annotations = (struct labels){hash, 1};
    p->obj.meta.created_ms = NOW - 5000;
    p->node = p->pin = "n1";
    p->phase = POD_RUNNING;
    p->ready = true;
    return p;
}

static struct pod *current(struct fixture *f, int index)
{
    return add(f, 2, 5, index);
}

static const struct group_pods *take(struct fixture *f)
{
    group_pods_take(&f->view, HASH, &f->arena, &f->taken);
    return &f->taken;
}

static void fails(struct fixture *f, struct pod *p, int32_t exit_code, int64_t finished_ms)
{
    p->phase = POD_FAILED;
    p->ready = false;
    p->containers = arena_new(&f->arena, struct container_status);
    *p->containers = (struct container_status){
        .name = "w", .terminated = true, .exit_code = exit_code, .reason = "Error", .finished_ms = finished_ms};
    p->n_containers = 1;
}

static void deleted(struct pod *p, int64_t asked_ms)
{
    p->obj.meta.deletion_grace_s = 30;
    p->obj.meta.deleted_ms = asked_ms + 30000;
}

static void pods_are_counted_by_what_they_are(void **state)
{
    struct fixture *f = *state;
    current(f, 2)->node = NULL;
    f->pods[0].phase = POD_PENDING;
    struct pod *done = current(f, 0);
    done->phase = POD_SUCCEEDED;
    done->obj.meta.created_ms = NOW - 100;
    current(f, 1);
    const struct group_pods *c = take(f);
    assert_int_equal(c->gang.existing, 3);
    assert_int_equal(c->gang.bound, 2);
    assert_int_equal(c->ready, 1); // a pod that has ended is not ready, whatever its condition says
    assert_int_equal(c->succeeded, 1);
    assert_int_equal(c->gang.newest_ms, NOW - 100);
    assert_ptr_equal(c->current[0], done);
    assert_ptr_equal(c->current[2], &f->pods[0]);
    assert_false(c->changed || c->gang.from_the_future || c->failure.time_ms || c->gang.stuck || c->gang.n_gone);
    assert_int_equal(c->gang.look_again_ms, -1);
}

static void pods_of_other_sets_are_stale(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 4, 0);
    add(f, 2, 4, 1);
    current(f, 3); // an index beyond the replicas
    current(f, -1);
    current(f, 1);
    const struct group_pods *c = take(f);
    assert_int_equal(c->gang.existing, 1);
    assert_int_equal(c->gang.n_gone, 4);
    assert_int_equal(c->mine, 3);
    assert_null(c->current[0]);
}

static void a_copy_of_a_pod_does_not_take_its_place(void **state)
{
    for (int first = 0; first < 2; first++) {
        struct fixture *f = *state;
        f->view.gang.n_pods = 0;
        struct pod *a = current(f, 0), *b = current(f, 0);
        struct pod *copy = first ? a : b, *original = first ? b : a;
        copy->obj.meta.name = "copy";
        const struct group_pods *c = take(f);
        assert_ptr_equal(c->current[0], original);
        assert_int_equal(c->gang.n_gone, 1);
        assert_ptr_equal(c->gang.gone[0], copy);
    }
}

static void another_spec_is_seen_at_any_index(void **state)
{
    struct fixture *f = *state;
    current(f, 0);
    struct pod *beyond = current(f, 3);
    assert_true(take(f)->changed == false);
    beyond->obj.meta.annotations.items[0].value = "0";
    assert_true(take(f)->changed);
}

static void a_young_pod_from_the_future_means_that_the_status_is_old(void **state)
{
    struct fixture *f = *state;
    struct pod *p = add(f, 3, 6, 0);
    assert_true(take(f)->gang.from_the_future);
    assert_int_equal(f->taken.gang.attempt, 2);
    p->obj.meta.created_ms = NOW - 61000; // no cache is so slow: somebody has deleted the status
    const struct group_pods *c = take(f);
    assert_false(c->gang.from_the_future);
    assert_int_equal(c->gang.attempt, 3);
    assert_int_equal(c->gang.incarnation, 6);
    assert_ptr_equal(c->current[0], p);
}

static void a_clock_that_is_ahead_makes_no_lost_status_wait_longer(void **state)
{
    struct fixture *f = *state;
    const int64_t hour = 3600 * 1000;
    add(f, 3, 6, 0)->obj.meta.created_ms = NOW + hour;
    const struct group_pods *c = take(f);
    assert_true(c->gang.from_the_future);
    assert_int_equal(c->gang.status.since_ms, NOW);
    f->memory.waits[WAIT_STATUS] = c->gang.status;
    f->view.gang.now_ms = NOW + 59000;
    assert_true(take(f)->gang.from_the_future);
    f->view.gang.now_ms = NOW + 60000;
    c = take(f);
    assert_false(c->gang.from_the_future);
    assert_int_equal(c->gang.incarnation, 6);
}

static void a_status_with_impossible_counters_does_no_harm(void **state)
{
    struct fixture *f = *state;
    f->wg.status.attempt = -5;
    f->wg.status.incarnation = -5;
    add(f, 1, 0, 0);
    const struct group_pods *c = take(f);
    assert_int_equal(c->gang.attempt, 1);
    assert_int_equal(c->gang.incarnation, 0);
    assert_int_equal(c->gang.existing, 1);
}

static void the_first_failure_explains_the_others(void **state)
{
    struct fixture *f = *state;
    fails(f, current(f, 0), 1, NOW - 2000);
    fails(f, current(f, 2), 139, NOW - 3000);
    const struct group_pods *c = take(f);
    assert_int_equal(c->failure.rank, 4); // the first rank of the pod
    assert_int_equal(c->failure.exit_code, 139);
    assert_string_equal(c->failure.pod, "g-2-5");
    assert_string_equal(c->failure.node, "n1");
    assert_string_equal(c->failure.reason, "Error");
    assert_int_equal(c->failure.time_ms, NOW - 3000);
    assert_false(c->infrastructure);
}

static void a_failure_is_never_later_than_now(void **state)
{
    struct fixture *f = *state;
    fails(f, current(f, 0), 1, NOW + 3600000); // the clock of the node is fast
    assert_int_equal(take(f)->failure.time_ms, NOW);
}

static void the_container_that_ended_first_is_the_cause(void **state)
{
    struct fixture *f = *state;
    struct pod *p = current(f, 0);
    struct container_status containers[] = {
        {.name = "done", .terminated = true, .exit_code = 0, .finished_ms = NOW - 9000},
        {.name = "late", .terminated = true, .exit_code = 143, .finished_ms = NOW - 1000},
        {.name = "first", .terminated = true, .exit_code = 7, .reason = "OOMKilled", .finished_ms = NOW - 2000},
    };
    p->phase = POD_FAILED;
    p->containers = containers;
    p->n_containers = ARRAY_LEN(containers);
    assert_int_equal(take(f)->failure.exit_code, 7);
    assert_string_equal(f->taken.failure.reason, "OOMKilled");
}

static void evictions_are_of_the_infrastructure(void **state)
{
    struct fixture *f = *state;
    struct pod *p = current(f, 0);
    fails(f, p, 143, NOW - 1000);
    p->disruption = "PreemptionByScheduler";
    assert_true(take(f)->infrastructure);
    assert_string_equal(f->taken.failure.reason, "PreemptionByScheduler");
}

static void a_deleted_pod_has_failed_unless_it_had_succeeded(void **state)
{
    struct fixture *f = *state;
    struct pod *p = current(f, 1);
    deleted(p, NOW - 2000);
    assert_true(take(f)->infrastructure && f->taken.failure.time_ms);
    assert_string_equal(f->taken.failure.reason, FAILURE_POD_DELETED);
    assert_int_equal(f->taken.failure.exit_code, -1);
    fails(f, p, 143, NOW - 1000); // the deletion killed it
    assert_true(take(f)->infrastructure);
    fails(f, p, 1, NOW - 5000); // it had failed before the deletion
    assert_false(take(f)->infrastructure);
    assert_int_equal(f->taken.failure.exit_code, 1);
    p->phase = POD_SUCCEEDED;
    assert_int_equal(take(f)->failure.time_ms, 0);
}

static void what_falls_with_a_deleted_pod_is_not_the_cause(void **state)
{
    struct fixture *f = *state;
    fails(f, current(f, 0), 1, NOW - 1000);
    deleted(current(f, 1), NOW - 1000); // within the same second
    const struct group_pods *c = take(f);
    assert_true(c->infrastructure);
    assert_int_equal(c->failure.rank, 2);
}

static void a_node_is_lost_after_its_time_or_at_once_if_it_is_gone(void **state)
{
    struct fixture *f = *state;
    struct pod *p = current(f, 0);
    p->node = "n2";
    set_node(f, "n2", "gpu=8 notready", NOW - 20000);
    const struct group_pods *c = take(f);
    assert_int_equal(c->failure.time_ms, 0);
    assert_int_equal(c->gang.look_again_ms, 40000);
    set_node(f, "n2", "gpu=8 notready", NOW - 60000);
    c = take(f);
    assert_string_equal(c->failure.reason, FAILURE_NODE_LOST);
    assert_true(c->infrastructure);
    cluster_del_node(f->cluster, "n2");
    assert_string_equal(take(f)->failure.reason, FAILURE_NODE_LOST);
    p->phase = POD_SUCCEEDED; // a pod that has ended does not need its node
    assert_int_equal(take(f)->failure.time_ms, 0);
}

static void a_clock_that_was_put_back_does_not_keep_a_lost_node(void **state)
{
    struct fixture *f = *state;
    current(f, 0)->node = "n2";
    set_node(f, "n2", "gpu=8 notready", NOW + 3600000);
    assert_int_equal(take(f)->gang.look_again_ms, 60000);
}

static void silent_nodes_of_stale_pods_are_watched_too(void **state)
{
    struct fixture *f = *state;
    struct pod *p = add(f, 1, 4, 0);
    p->node = "n2";
    deleted(p, NOW - 5000);
    set_node(f, "n2", "gpu=8 notready", NOW - 20000);
    assert_int_equal(take(f)->gang.look_again_ms, 40000);
    assert_int_equal(f->taken.failure.time_ms, 0);
}

static void a_pod_is_not_ready_while_its_node_is_silent(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        current(f, i)->ready = true; // this stays true, because the kubelet is silent
    f->pods[0].node = "n2";
    assert_int_equal(take(f)->ready, 3);
    set_node(f, "n2", "gpu=8 notready", NOW - 20000);
    assert_int_equal(take(f)->ready, 2);
    assert_int_equal(f->taken.ready_workers, 4);
    set_node(f, "n2", "gpu=8", NOW);
    assert_int_equal(take(f)->ready, 3);
}

static void a_node_has_time_to_report_after_an_outage_of_the_api_server(void **state)
{
    struct fixture *f = *state;
    struct pod *p = current(f, 0);
    p->ready = true;
    p->node = "n2";
    set_node(f, "n2", "gpu=8 notready", NOW - 20000);
    cluster_note_outage(f->cluster, NOW - 20000, NOW - 10000);
    assert_int_equal(take(f)->ready, 1);
    assert_int_equal(f->taken.gang.look_again_ms, CLUSTER_REPORT_MS - 10000);
    cluster_note_outage(f->cluster, NOW - 20000 - CLUSTER_REPORT_MS, NOW - CLUSTER_REPORT_MS);
    assert_int_equal(take(f)->ready, 0);
}

static void who_fails_while_a_peers_node_is_silent_is_its_victim(void **state)
{
    struct fixture *f = *state;
    current(f, 0)->node = "n2";
    set_node(f, "n2", "gpu=8 notready", NOW - 20000);
    struct pod *p = current(f, 1);
    fails(f, p, 1, NOW - 1000);
    assert_true(take(f)->infrastructure);
    assert_int_equal(f->taken.failure.exit_code, 1);
    fails(f, p, 1, NOW - 30000); // it failed first
    assert_false(take(f)->infrastructure);
}

static void what_does_not_mend_itself_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct pod *p = current(f, 1);
    struct container_status containers[] = {{.name = "side"}, {.name = "w", .waiting = true}};
    p->containers = containers;
    p->n_containers = ARRAY_LEN(containers);
    containers[1].reason = "ContainerCreating";
    assert_null(take(f)->gang.stuck);
    containers[1].reason = "ErrImagePull";
    assert_ptr_equal(take(f)->gang.stuck, p);
    assert_ptr_equal(f->taken.gang.stuck_container, &containers[1]);
    assert_string_equal(f->taken.gang.stuck_reason, REASON_IMAGE);
    containers[1].reason = "CreateContainerConfigError";
    assert_string_equal(take(f)->gang.stuck_reason, REASON_CONTAINER_CONFIG);
}

static void placements_are_compact(void **state)
{
    struct fixture *f = *state;
    static const char *const nodes[] = {"n2", "n1", "n1", "n2", "n1", "n1", NULL};
    f->wg.spec.replicas = 8;
    for (int i = 0; i < 7; i++) {
        struct pod *p = current(f, i);
        p->node = i == 5 ? NULL : nodes[i];
        p->pin = nodes[i]; // a pinned pod counts too
    }
    struct node_ranges *got;
    const struct group_pods *c = take(f);
    assert_int_equal(gang_pods_placements(c->current, c->replicas, &f->arena, &got), 2);
    assert_string_equal(got[0].node, "n2"); // in the order of the first index
    assert_string_equal(got[0].ranges, "0,3");
    assert_string_equal(got[1].node, "n1");
    assert_string_equal(got[1].ranges, "1-2,4-5");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(pods_are_counted_by_what_they_are),
        TEST(pods_of_other_sets_are_stale),
        TEST(a_copy_of_a_pod_does_not_take_its_place),
        TEST(another_spec_is_seen_at_any_index),
        TEST(a_young_pod_from_the_future_means_that_the_status_is_old),
        TEST(a_clock_that_is_ahead_makes_no_lost_status_wait_longer),
        TEST(a_status_with_impossible_counters_does_no_harm),
        TEST(the_first_failure_explains_the_others),
        TEST(a_failure_is_never_later_than_now),
        TEST(the_container_that_ended_first_is_the_cause),
        TEST(evictions_are_of_the_infrastructure),
        TEST(a_deleted_pod_has_failed_unless_it_had_succeeded),
        TEST(what_falls_with_a_deleted_pod_is_not_the_cause),
        TEST(a_node_is_lost_after_its_time_or_at_once_if_it_is_gone),
        TEST(a_clock_that_was_put_back_does_not_keep_a_lost_node),
        TEST(silent_nodes_of_stale_pods_are_watched_too),
        TEST(a_pod_is_not_ready_while_its_node_is_silent),
        TEST(a_node_has_time_to_report_after_an_outage_of_the_api_server),
        TEST(who_fails_while_a_peers_node_is_silent_is_its_victim),
        TEST(what_does_not_mend_itself_is_noticed),
        TEST(placements_are_compact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
