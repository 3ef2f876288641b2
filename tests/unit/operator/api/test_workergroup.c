// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workergroup.h"

#include "common/base/str.h"
#include "operator/api/json_table.h"
#include "operator/api/object_decode.h"
#include "operator/api/placementgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static const struct workergroup *decode(const char *json)
{
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    if (object_decode(KIND_WORKERGROUP, json, strlen(json), &o, &err) < 0)
        fail_msg("%s", err.msg);
    return workergroup_of(o);
}

#define NAMED(rest) "{\"metadata\":{\"name\":\"llama\",\"namespace\":\"ml\"},\"spec\":" rest "}"

static void what_the_schema_leaves_open_gets_its_default(void **state)
{
    (void)state;
    const char *texts[] = {NAMED("{}"), NAMED("{\"placement\":{},\"restartBackoff\":{},\"failurePolicy\":null,"
                                              "\"activeDeadlineSeconds\":null,\"worker\":null,\"template\":null}")};
    for (size_t i = 0; i < 2; i++) {
        const struct workergroup *wg = decode(texts[i]);
        const struct workergroup_spec *s = &wg->spec;
        assert_int_equal(s->replicas, 1);
        assert_int_equal(s->workers_per_replica, 1);
        assert_int_equal(s->gang.strategy, STRATEGY_PACK);
        assert_string_equal(s->gang.topology_key, "kubernetes.io/hostname");
        assert_int_equal(s->gang.pod_per, POD_PER_BUNDLE);
        assert_int_equal(s->gang.timeout_s, 300);
        assert_int_equal(s->gang.node_lost_s, 60);
        assert_int_equal(s->n_placement_groups, 0);
        assert_int_equal(s->runtime, RUNTIME_AGENT);
        assert_false(s->has_worker);
        assert_int_equal(s->rendezvous_port, 29500);
        assert_int_equal(s->restart_policy, RESTART_GROUP);
        assert_int_equal(s->max_restarts, 3);
        assert_int_equal(s->backoff_initial_s, 1);
        assert_int_equal(s->backoff_max_s, 300);
        assert_int_equal(s->success_policy, SUCCESS_ALL);
        assert_int_equal(s->n_failure_rules, 0);
        assert_false(s->suspend);
        assert_int_equal(s->active_deadline_s, -1);
        assert_int_equal(s->ttl_s, -1);
        assert_null(s->template_json);
        assert_int_equal(wg->status.last_failure.time_ms, 0);
        assert_int_equal(wg->status.n_conditions, 0);
        object_unref(&wg->obj);
    }
}

static void every_field_of_the_spec_is_read(void **state)
{
    (void)state;
    const struct workergroup *wg = decode(NAMED(
        "{\"replicas\":4,\"workersPerReplica\":2,\"placement\":{\"strategy\":\"StrictSpread\",\"topologyKey\":\"rack\","
        "\"podPer\":\"Node\",\"timeoutSeconds\":10,\"nodeLostSeconds\":20,\"groups\":[{\"name\":\"pool\",\"bundles\":"
        "\"0-3\"},{\"name\":\"b\"}]},\"runtime\":\"Plain\",\"worker\":{\"module\":\"/m.so\",\"init\":{\"start\":0},"
        "\"env\":[{\"name\":\"A\",\"value\":\"b\"}],\"meshes\":[{\"name\":\"t\",\"dims\":[{\"name\":\"dp\",\"size\":8}]"
        "}]},"
        "\"rendezvousPort\":1234,\"heartbeatSeconds\":5,\"restartPolicy\":\"Never\",\"maxRestarts\":0,"
        "\"restartBackoff\":{\"initialSeconds\":0,\"maxSeconds\":9},\"successPolicy\":\"RankZero\","
        "\"failurePolicy\":{\"rules\":[{\"exitCodes\":[42,255],\"action\":\"Ignore\"}]},\"suspend\":true,"
        "\"activeDeadlineSeconds\":86400,\"ttlSecondsAfterFinished\":0,"
        "\"template\":{ \"spec\" : {\"containers\":[{\"name\":\"w\",\"n\":12345678901234567890.10}]}}}"));
    const struct workergroup_spec *s = &wg->spec;
    assert_int_equal(s->replicas, 4);
    assert_int_equal(s->workers_per_replica, 2);
    assert_int_equal(s->gang.strategy, STRATEGY_STRICT_SPREAD);
    assert_string_equal(strategy_name(s->gang.strategy), "StrictSpread");
    assert_string_equal(s->gang.topology_key, "rack");
    assert_int_equal(s->gang.pod_per, POD_PER_NODE);
    assert_int_equal(s->gang.timeout_s, 10);
    assert_int_equal(s->gang.node_lost_s, 20);
    assert_int_equal(s->n_placement_groups, 2);
    assert_int_equal(s->runtime, RUNTIME_PLAIN);
    assert_true(s->has_worker);
    assert_int_equal(s->rendezvous_port, 1234);
    assert_int_equal(s->restart_policy, RESTART_NEVER);
    assert_int_equal(s->max_restarts, 0);
    assert_int_equal(s->backoff_initial_s, 0);
    assert_int_equal(s->backoff_max_s, 9);
    assert_int_equal(s->success_policy, SUCCESS_RANK_ZERO);
    assert_int_equal(s->n_failure_rules, 1);
    assert_int_equal(s->failure_rules[0].n_exit_codes, 2);
    assert_int_equal(s->failure_rules[0].exit_codes[1], 255);
    assert_int_equal(s->failure_rules[0].action, FAILURE_IGNORE);
    assert_true(s->suspend);
    assert_int_equal(s->active_deadline_s, 86400);
    assert_int_equal(s->ttl_s, 0);
    // verbatim, with env, although lists of that name are skipped elsewhere
    assert_string_equal(s->template_json,
                        "{ \"spec\" : {\"containers\":[{\"name\":\"w\",\"n\":12345678901234567890.10}]}}");
    object_unref(&wg->obj);
}

static void what_a_worker_runs_is_read(void **state)
{
    (void)state;
    const struct workergroup *wg = decode(
        NAMED("{\"heartbeatSeconds\":5,\"worker\":{\"module\":\"/m.so\",\"class\":\"A\",\"init\":{ \"start\" : 1e3 },"
              "\"workingDir\":\"/w\",\"gpus\":0,\"gpuVisibility\":\"All\",\"roles\":[{\"name\":\"a\", "
              "\"class\":\"A\"}],\"env\":[{\"name\":\"A\",\"value\":"
              "\"b\"},{\"name\":\"K\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}}],\"meshes\":[{"
              "\"name\":"
              "\"t\",\"dims\":[{\"name\":\"pp\",\"size\":2},{\"name\":\"dp\",\"size\":4}]}]}}"));
    const struct worker_spec *s = &wg->spec.worker;
    assert_int_equal(wg->spec.heartbeat_s, 5);
    assert_string_equal(s->module, "/m.so");
    assert_null(s->python);
    assert_string_equal(s->class_name, "A");
    assert_string_equal(s->init_json, "{ \"start\" : 1e3 }"); // verbatim
    assert_string_equal(s->working_dir, "/w");
    assert_int_equal(s->gpus, 0);
    assert_int_equal(s->gpu_visibility, GPU_VISIBILITY_ALL);
    assert_string_equal(s->roles_json, "[{\"name\":\"a\", \"class\":\"A\"}]");
    assert_int_equal(s->n_env, 2);
    assert_string_equal(s->env[0].value, "b");
    assert_string_equal(s->env[1].value_from, "{\"secretKeyRef\":{\"name\":\"s\",\"key\":\"k\"}}");
    assert_int_equal(s->n_meshes, 1);
    assert_string_equal(s->meshes[0].name, "t");
    assert_int_equal(s->meshes[0].n_dims, 2);
    assert_string_equal(s->meshes[0].dims[1].name, "dp");
    assert_int_equal(s->meshes[0].dims[1].size, 4);
    object_unref(&wg->obj);
    wg = decode(NAMED("{\"worker\":{\"command\":[\"/train\",\"-v\"],\"args\":[\"x\"]}}"));
    s = &wg->spec.worker;
    assert_int_equal(wg->spec.heartbeat_s, 3);
    assert_int_equal(s->n_command, 2);
    assert_string_equal(s->command[1], "-v");
    assert_int_equal(s->n_args, 1);
    assert_int_equal(s->gpus, -1);
    assert_int_equal(s->gpu_visibility, GPU_VISIBILITY_DEFAULT);
    object_unref(&wg->obj);
}

static struct condition conditions[] = {
    {.type = "Accepted",
     .status = CONDITION_TRUE,
     .reason = "Valid",
     .message = "",
     .observed_generation = 7,
     .changed_ms = 5000},
    {.type = "Ready",
     .status = CONDITION_FALSE,
     .reason = "Insufficient",
     .message = "needs \"8\"",
     .observed_generation = 7,
     .changed_ms = 6789},
    {.type = "Scheduled",
     .status = CONDITION_UNKNOWN,
     .reason = "Pending",
     .message = "",
     .observed_generation = 7,
     .changed_ms = 7000},
};
static struct placementgroup_ref pools[] = {{"pool", "0-3"}, {"pool-b", NULL}};
static struct node_ranges placements[] = {{"n1", "0-3"}, {"n2", "4,6"}};

static struct workergroup_status full_status(void)
{
    return (struct workergroup_status){
        .observed_generation = INT64_C(9007199254740993),
        .world_size = 8,
        .ready_workers = 7,
        .replicas = 6,
        .ready_replicas = 5,
        .scheduled_replicas = 4,
        .gpus = 64,
        .attempt = 3,
        .incarnation = 2,
        .restarts = 9,
        .restarts_counted = 1,
        .restarts_in_a_row = 5,
        .revision = {"00ab", "00cd", 2, 6, 1, pools, 2},
        .master_addr = "llama-0.llama.ml.svc:29500",
        .selector = "cadre.dev/group=llama",
        .strategy = "Pack",
        .placements = placements,
        .n_placements = 2,
        .last_failure = {.rank = 0,
                         .pod = "llama-0-1",
                         .node = "n1",
                         .reason = "Error",
                         .message = "boom",
                         .exit_code = 1,
                         .time_ms = 9876},
        .conditions = conditions,
        .n_conditions = 3,
    };
}

static const struct workergroup *applied(const char *patch, struct arena *a)
{
    return decode(arena_printf(a, "{\"metadata\":{\"name\":\"x\"},\"spec\":{},%s", patch + 1));
}

static void a_status_comes_back_as_it_was_written(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct workergroup_status s = full_status();
    const struct workergroup *wg = applied(workergroup_status_patch(&s, &a), &a);
    const struct workergroup_status *got = &wg->status;
    assert_true(workergroup_status_equal(&s, got));
    assert_int_equal(got->observed_generation, INT64_C(9007199254740993));
    assert_int_equal(got->world_size, 8);
    assert_int_equal(got->ready_workers, 7);
    assert_int_equal(got->replicas, 6);
    assert_int_equal(got->ready_replicas, 5);
    assert_int_equal(got->scheduled_replicas, 4);
    assert_int_equal(got->gpus, 64);
    assert_int_equal(got->attempt, 3);
    assert_int_equal(got->incarnation, 2);
    assert_int_equal(got->restarts, 9);
    assert_int_equal(got->restarts_counted, 1);
    assert_int_equal(got->restarts_in_a_row, 5);
    assert_string_equal(got->revision.pods, "00ab");
    assert_string_equal(got->revision.worker, "00cd");
    assert_int_equal(got->revision.attempt, 2);
    assert_string_equal(got->master_addr, "llama-0.llama.ml.svc:29500");
    assert_string_equal(got->selector, "cadre.dev/group=llama");
    assert_string_equal(got->strategy, "Pack");
    assert_int_equal(got->n_placements, 2);
    assert_string_equal(got->placements[1].node, "n2");
    assert_string_equal(got->placements[1].ranges, "4,6");
    assert_int_equal(got->last_failure.rank, 0);
    assert_string_equal(got->last_failure.message, "boom");
    assert_int_equal(got->last_failure.exit_code, 1);
    assert_int_equal(got->last_failure.time_ms, 9876);
    const struct condition *ready = condition_find(got->conditions, got->n_conditions, "Ready");
    assert_int_equal(ready->status, CONDITION_FALSE);
    assert_string_equal(ready->reason, "Insufficient");
    assert_string_equal(ready->message, "needs \"8\"");
    assert_int_equal(ready->changed_ms, 6000);
    assert_int_equal(ready->observed_generation, 7);
    assert_null(condition_find(got->conditions, got->n_conditions, "Failed"));
    object_unref(&wg->obj);
    arena_done(&a);
}

static void a_patch_writes_every_field_so_that_nothing_old_stays(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct workergroup_status empty = {.last_failure = {.rank = -1, .exit_code = -1}};
    assert_string_equal(
        workergroup_status_patch(&empty, &a),
        "{\"status\":{\"observedGeneration\":0,\"conditions\":null,\"worldSize\":0,\"readyWorkers\":0,\"replicas\":0,"
        "\"scheduledReplicas\":0,\"readyReplicas\":0,\"gpus\":0,\"attempt\":0,\"incarnation\":0,\"restarts\":0,"
        "\"restartsCountTowardsMax\":0,\"restartsInARow\":0,\"masterAddr\":null,\"strategy\":null,\"selector\":null,"
        "\"placements\":null,\"lastFailure\":null,\"revision\":null}}");
    empty.last_failure.time_ms = 1000;
    assert_non_null(strstr(workergroup_status_patch(&empty, &a),
                           "\"lastFailure\":{\"rank\":null,\"pod\":null,\"node\":null,\"exitCode\":null,"
                           "\"reason\":null,\"message\":null,\"time\":\"1970-01-01T00:00:01.000000Z\"}"));
    arena_done(&a);
}

static const struct json_table *status_table(void)
{
    for (size_t i = 0; i < workergroup_table.n; i++)
        if (strcmp(workergroup_table.fields[i].name, "status") == 0)
            return workergroup_table.fields[i].table;
    return NULL;
}

static void a_patch_and_the_table_name_the_same_fields(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct workergroup_status s = full_status();
    struct json *root;
    struct err err = ERR_INIT;
    const struct json_table *table = status_table();
    const char *patch = workergroup_status_patch(&s, &a);
    assert_int_equal(json_parse(patch, strlen(patch), NULL, &a, &root, &err), 0);
    const struct json *status = json_get(root, "status");
    for (size_t i = 0; i < table->n; i++)
        if (!json_get(status, table->fields[i].name))
            fail_msg("%s is read but never written", table->fields[i].name);
    assert_int_equal(json_count(status), table->n); // no other field is written
    arena_done(&a);
}

// The API server accepts messages of 32,768 characters, etcd accepts objects of 1.5 MiB.
static void a_status_of_any_size_can_be_stored(void **state)
{
    (void)state;
    enum { NODES = 10000, LONG = 100000 };
    struct arena a = ARENA_INIT;
    struct workergroup_status s = full_status();
    struct condition wordy = conditions[1];
    char *text = arena_alloc(&a, LONG + 1), *name = arena_alloc(&a, 254);
    memset(text, 'x', LONG);
    for (size_t i = 1; i + 2 <= LONG; i += 2) // a character crosses the limit
        memcpy(text + i, "\xc3\xa9", 2);
    memset(name, 'n', 253);
    struct node_ranges *all = arena_array(&a, NODES, sizeof *all);
    for (size_t i = 0; i < NODES; i++)
        all[i] = (struct node_ranges){name, arena_printf(&a, "%zu", i)};
    s.placements = all;
    s.n_placements = NODES;
    wordy.message = s.last_failure.message = s.last_failure.reason = text;
    s.conditions = &wordy;
    s.n_conditions = 1;

    const char *patch = workergroup_status_patch(&s, &a);
    assert_true(strlen(patch) < 512 * 1024);
    const struct workergroup *wg = applied(patch, &a);
    const struct workergroup_status *got = &wg->status;
    assert_int_equal(strlen(got->conditions[0].message), 32767);
    assert_memory_equal(got->conditions[0].message, text, 32767);
    assert_int_equal(strlen(got->last_failure.message), 32767);
    assert_int_equal(strlen(got->last_failure.reason), 1023);
    assert_int_equal(got->n_placements, 1000);
    assert_string_equal(got->placements[999].ranges, "999");
    assert_true(workergroup_status_equal(&s, got)); // a cut text does not count as a change
    object_unref(&wg->obj);
    arena_done(&a);
}

static void equality_is_that_of_what_is_written(void **state)
{
    (void)state;
    struct workergroup_status a = full_status(), b = full_status();
    struct condition other[3];
    memcpy(other, conditions, sizeof other);
    b.conditions = other;
    assert_true(workergroup_status_equal(&a, &b));
    other[1].changed_ms += 60000; // of a condition that did not change
    assert_true(workergroup_status_equal(&a, &b));
    other[1].message = "needs \"9\"";
    assert_false(workergroup_status_equal(&a, &b));
    other[1].message = conditions[1].message;
    other[1].status = CONDITION_TRUE;
    assert_false(workergroup_status_equal(&a, &b));
    b = full_status();
    b.placements = NULL;
    b.n_placements = 0;
    assert_false(workergroup_status_equal(&a, &b));
    b = full_status();
    b.last_failure.time_ms += 1000;
    assert_false(workergroup_status_equal(&a, &b));
    b = full_status();
    b.last_failure.time_ms += 1;
    assert_false(workergroup_status_equal(&a, &b));
    b = full_status();
    b.incarnation++;
    assert_false(workergroup_status_equal(&a, &b));
}

// The writer repairs a message that was cut in the middle of a character. This must not count as a change each time.
static void a_repaired_message_is_no_change(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    struct workergroup_status s = full_status();
    s.last_failure.message = "cut \xe2\x82";
    const struct workergroup *wg = applied(workergroup_status_patch(&s, &a), &a);
    assert_true(workergroup_status_equal(&s, &wg->status));
    object_unref(&wg->obj);
    arena_done(&a);
}

static void a_placementgroup_comes_back_as_it_was_written(void **state)
{
    (void)state;
    struct arena a = ARENA_INIT;
    const struct object *o = NULL;
    struct err err = ERR_INIT;
    struct node_ranges placement = {"n1", "0-2"};
    struct placementgroup_status s = {
        .observed_generation = 7,
        .bundles = 4,
        .bound_bundles = 3,
        .gpus = 8,
        .nodes = 1,
        .incarnation = 2,
        .placements = &placement,
        .n_placements = 1,
        .conditions = conditions,
        .n_conditions = 2,
    };
    const char *json = arena_printf(&a,
                                    "{\"kind\":\"PlacementGroup\",\"metadata\":{\"name\":\"pool\"},\"spec\":{"
                                    "\"strategy\":\"Spread\",\"bundles\":[{\"resources\":{\"cpu\":1}},{\"count\":3,"
                                    "\"resources\":{\"cpu\":\"2\"},\"nodeSelector\":{\"zone\":\"a\"}}]},%s",
                                    placementgroup_status_patch(&s, &a) + 1);
    assert_int_equal(object_decode(KIND_PLACEMENTGROUP, json, strlen(json), &o, &err), 0);
    const struct placementgroup *plg = placementgroup_of(o);
    assert_true(placementgroup_status_equal(&s, &plg->status));
    assert_int_equal(plg->status.observed_generation, 7);
    assert_int_equal(plg->spec.gang.strategy, STRATEGY_SPREAD);
    assert_int_equal(plg->spec.gang.pod_per, POD_PER_NODE);
    assert_string_equal(plg->spec.gang.topology_key, "kubernetes.io/hostname");
    assert_int_equal(plg->spec.gang.timeout_s, 300);
    assert_int_equal(plg->spec.gang.node_lost_s, 60);
    assert_int_equal(plg->spec.n_bundles, 2);
    assert_int_equal(plg->spec.bundles[0].count, 1);
    assert_string_equal(plg->spec.bundles[0].resources_json, "{\"cpu\":1}");
    assert_int_equal(plg->spec.bundles[1].count, 3);
    assert_string_equal(labels_get(&plg->spec.bundles[1].node_selector, "zone"), "a");
    s.bound_bundles = 4;
    assert_false(placementgroup_status_equal(&s, &plg->status));
    object_unref(o);
    arena_done(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_schema_leaves_open_gets_its_default),
        cmocka_unit_test(every_field_of_the_spec_is_read),
        cmocka_unit_test(what_a_worker_runs_is_read),
        cmocka_unit_test(a_status_comes_back_as_it_was_written),
        cmocka_unit_test(a_patch_writes_every_field_so_that_nothing_old_stays),
        cmocka_unit_test(a_patch_and_the_table_name_the_same_fields),
        cmocka_unit_test(a_status_of_any_size_can_be_stored),
        cmocka_unit_test(equality_is_that_of_what_is_written),
        cmocka_unit_test(a_repaired_message_is_no_change),
        cmocka_unit_test(a_placementgroup_comes_back_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
