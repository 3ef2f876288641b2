// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workergroup.h"

#include "common/base/str.h"
#include "operator/api/tables.h"

#define SPEC(member) offsetof(struct workergroup_spec, member)
#define STATUS(member) offsetof(struct workergroup_status, member)
#define FAILURE(member) offsetof(struct group_failure, member)

static const char *const strategy_names[] = {
    [STRATEGY_PACK] = "Pack", [STRATEGY_SPREAD] = "Spread", [STRATEGY_STRICT_PACK] = "StrictPack",
    [STRATEGY_STRICT_SPREAD] = "StrictSpread", NULL};
static const char *const pod_per_names[] = {[POD_PER_BUNDLE] = "Bundle", [POD_PER_NODE] = "Node", NULL};
static const char *const runtime_names[] = {[RUNTIME_AGENT] = "Agent", [RUNTIME_PLAIN] = "Plain", NULL};
static const char *const restart_names[] = {
    [RESTART_GROUP] = "Group", [RESTART_WORKER] = "Worker", [RESTART_NEVER] = "Never", NULL};
static const char *const success_names[] = {[SUCCESS_ALL] = "All", [SUCCESS_RANK_ZERO] = "RankZero", NULL};

enum { SECONDS_MAX = 86400, REPLICAS_MAX = 10000, WORKERS_MAX = 64 };

static JSON_TABLE(placement_table, struct workergroup_spec,
                  {.name = "strategy", .kind = J_ENUM, .names = strategy_names, .offset = SPEC(strategy)},
                  {.name = "topologyKey", .kind = J_STRING, .missing_str = "kubernetes.io/hostname",
                   .offset = SPEC(topology_key)},
                  {.name = "podPer", .kind = J_ENUM, .names = pod_per_names, .offset = SPEC(pod_per)},
                  {.name = "timeoutSeconds", .kind = J_I32, .min = 1, .max = SECONDS_MAX, .missing = 300,
                   .offset = SPEC(timeout_s)},
                  {.name = "nodeLostSeconds", .kind = J_I32, .min = 1, .max = SECONDS_MAX, .missing = 60,
                   .offset = SPEC(node_lost_s)},
                  {.name = "groups", .kind = J_COUNT, .offset = SPEC(n_placement_groups)});
static JSON_TABLE(backoff_table, struct workergroup_spec,
                  {.name = "initialSeconds", .kind = J_I32, .min = 0, .max = SECONDS_MAX, .missing = 1,
                   .offset = SPEC(backoff_initial_s)},
                  {.name = "maxSeconds", .kind = J_I32, .min = 0, .max = SECONDS_MAX, .missing = 300,
                   .offset = SPEC(backoff_max_s)});
static JSON_TABLE(failure_policy_table, struct workergroup_spec,
                  {.name = "rules", .kind = J_COUNT, .offset = SPEC(n_failure_rules)});
static JSON_TABLE(spec_table, struct workergroup_spec,
                  {.name = "replicas", .kind = J_I32, .min = 1, .max = REPLICAS_MAX, .missing = 1,
                   .offset = SPEC(replicas)},
                  {.name = "workersPerReplica", .kind = J_I32, .min = 1, .max = WORKERS_MAX, .missing = 1,
                   .offset = SPEC(workers_per_replica)},
                  {.name = "placement", .kind = J_OBJECT, .table = &placement_table},
                  {.name = "runtime", .kind = J_ENUM, .names = runtime_names, .offset = SPEC(runtime)},
                  {.name = "worker", .kind = J_OBJECT, .offset_is = SPEC(has_worker)},
                  {.name = "rendezvousPort", .kind = J_I32, .min = 1, .max = 65535, .missing = 29500,
                   .offset = SPEC(rendezvous_port)},
                  {.name = "restartPolicy", .kind = J_ENUM, .names = restart_names, .offset = SPEC(restart_policy)},
                  {.name = "maxRestarts", .kind = J_I32, .min = 0, .max = INT32_MAX, .missing = 3,
                   .offset = SPEC(max_restarts)},
                  {.name = "restartBackoff", .kind = J_OBJECT, .table = &backoff_table},
                  {.name = "successPolicy", .kind = J_ENUM, .names = success_names, .offset = SPEC(success_policy)},
                  {.name = "failurePolicy", .kind = J_OBJECT, .table = &failure_policy_table},
                  {.name = "suspend", .kind = J_BOOL, .offset = SPEC(suspend)},
                  {.name = "activeDeadlineSeconds", .kind = J_I64, .min = 1, .max = INT32_MAX, .missing = -1,
                   .offset = SPEC(active_deadline_s)},
                  {.name = "ttlSecondsAfterFinished", .kind = J_I64, .min = 0, .max = INT32_MAX, .missing = -1,
                   .offset = SPEC(ttl_s)},
                  {.name = "template", .kind = J_TEXT, .offset = SPEC(template_json)});

static JSON_TABLE(placements_table, struct node_replicas,
                  {.name = "node", .kind = J_STRING, .offset = offsetof(struct node_replicas, node)},
                  {.name = "replicas", .kind = J_STRING, .offset = offsetof(struct node_replicas, replicas)});
static JSON_TABLE(failure_table, struct group_failure,
                  {.name = "rank", .kind = J_I32, .missing = -1, .offset = FAILURE(rank)},
                  {.name = "pod", .kind = J_STRING, .offset = FAILURE(pod)},
                  {.name = "node", .kind = J_STRING, .offset = FAILURE(node)},
                  {.name = "exitCode", .kind = J_I32, .missing = -1, .offset = FAILURE(exit_code)},
                  {.name = "reason", .kind = J_STRING, .offset = FAILURE(reason)},
                  {.name = "message", .kind = J_STRING, .offset = FAILURE(message)},
                  {.name = "time", .kind = J_TIME, .offset = FAILURE(time_ms)});
static JSON_TABLE(status_table, struct workergroup_status,
                  {.name = "observedGeneration", .kind = J_I64, .offset = STATUS(observed_generation)},
                  {.name = "conditions", .kind = J_LIST, .table = &condition_table, .offset = STATUS(conditions),
                   .offset_n = STATUS(n_conditions)},
                  {.name = "worldSize", .kind = J_I32, .offset = STATUS(world_size)},
                  {.name = "readyWorkers", .kind = J_I32, .offset = STATUS(ready_workers)},
                  {.name = "replicas", .kind = J_I32, .offset = STATUS(replicas)},
                  {.name = "scheduledReplicas", .kind = J_I32, .offset = STATUS(scheduled_replicas)},
                  {.name = "readyReplicas", .kind = J_I32, .offset = STATUS(ready_replicas)},
                  {.name = "gpus", .kind = J_I32, .offset = STATUS(gpus)},
                  {.name = "attempt", .kind = J_I32, .offset = STATUS(attempt)},
                  {.name = "incarnation", .kind = J_I32, .offset = STATUS(incarnation)},
                  {.name = "restarts", .kind = J_I32, .offset = STATUS(restarts)},
                  {.name = "restartsCountTowardsMax", .kind = J_I32, .offset = STATUS(restarts_counted)},
                  {.name = "masterAddr", .kind = J_STRING, .offset = STATUS(master_addr)},
                  {.name = "strategy", .kind = J_STRING, .offset = STATUS(strategy)},
                  {.name = "selector", .kind = J_STRING, .offset = STATUS(selector)},
                  {.name = "placements", .kind = J_LIST, .table = &placements_table, .offset = STATUS(placements),
                   .offset_n = STATUS(n_placements)},
                  {.name = "lastFailure", .kind = J_OBJECT, .table = &failure_table,
                   .offset = STATUS(last_failure)});
JSON_TABLE(workergroup_table, struct workergroup,
           {.name = "spec", .kind = J_OBJECT, .required = true, .table = &spec_table,
            .offset = offsetof(struct workergroup, spec)},
           {.name = "status", .kind = J_OBJECT, .table = &status_table,
            .offset = offsetof(struct workergroup, status)});

const char *strategy_name(enum strategy s)
{
    return strategy_names[s];
}

int workergroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    (void)scratch;
    return json_decode(&workergroup_table, root, "", o, &o->arena, err);
}

static void write_failure(struct json_writer *w, const struct group_failure *f)
{
    if (!f->time_ms) {
        writer_null(w, "lastFailure");
        return;
    }
    writer_object(w, "lastFailure");
    if (f->rank >= 0)
        writer_i64(w, "rank", f->rank);
    else
        writer_null(w, "rank");
    writer_str(w, "pod", f->pod);
    writer_str(w, "node", f->node);
    if (f->exit_code >= 0)
        writer_i64(w, "exitCode", f->exit_code);
    else
        writer_null(w, "exitCode");
    writer_str(w, "reason", f->reason);
    writer_str(w, "message", f->message);
    writer_time(w, "time", f->time_ms);
    writer_object_end(w);
}

static void write_placements(struct json_writer *w, const struct workergroup_status *s)
{
    if (!s->n_placements) {
        writer_null(w, "placements");
        return;
    }
    writer_list(w, "placements");
    for (size_t i = 0; i < s->n_placements; i++) {
        writer_object(w, NULL);
        writer_str(w, "node", s->placements[i].node);
        writer_str(w, "replicas", s->placements[i].replicas);
        writer_object_end(w);
    }
    writer_list_end(w);
}

static char *write_status(const struct workergroup_status *s, bool times, struct arena *a)
{
    struct json_writer w;
    writer_init(&w, 0);
    writer_object(&w, NULL);
    writer_object(&w, "status");
    writer_i64(&w, "observedGeneration", s->observed_generation);
    conditions_write(&w, s->conditions, s->n_conditions, times);
    writer_i64(&w, "worldSize", s->world_size);
    writer_i64(&w, "readyWorkers", s->ready_workers);
    writer_i64(&w, "replicas", s->replicas);
    writer_i64(&w, "scheduledReplicas", s->scheduled_replicas);
    writer_i64(&w, "readyReplicas", s->ready_replicas);
    writer_i64(&w, "gpus", s->gpus);
    writer_i64(&w, "attempt", s->attempt);
    writer_i64(&w, "incarnation", s->incarnation);
    writer_i64(&w, "restarts", s->restarts);
    writer_i64(&w, "restartsCountTowardsMax", s->restarts_counted);
    writer_str(&w, "masterAddr", s->master_addr);
    writer_str(&w, "strategy", s->strategy);
    writer_str(&w, "selector", s->selector);
    write_placements(&w, s);
    write_failure(&w, &s->last_failure);
    writer_object_end(&w);
    writer_object_end(&w);
    return writer_finish(&w, a);
}

const char *workergroup_status_patch(const struct workergroup_status *s, struct arena *a)
{
    return write_status(s, true, a);
}

// Compared as written: what was rounded or repaired on the way out must not look like a change for ever.
bool workergroup_status_equal(const struct workergroup_status *a, const struct workergroup_status *b)
{
    struct arena arena = ARENA_INIT;
    bool equal = str_eq(write_status(a, false, &arena), write_status(b, false, &arena));
    arena_done(&arena);
    return equal;
}
