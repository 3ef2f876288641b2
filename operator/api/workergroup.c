// SPDX-License-Identifier: Apache-2.0
#include "operator/api/workergroup.h"

#include "operator/api/condition.h"
#include "operator/api/json_encode.h"
#include "operator/api/json_table.h"

#define SPEC(member) offsetof(struct workergroup_spec, member)
#define WORKER(member) offsetof(struct workergroup_spec, worker.member)
#define STATUS(member) offsetof(struct workergroup_status, member)
#define FAILURE(member) offsetof(struct group_failure, member)
#define REVISION(member) offsetof(struct workergroup_status, revision.member)

const char *const strategy_names[] = {[STRATEGY_PACK] = "Pack",
                                      [STRATEGY_SPREAD] = "Spread",
                                      [STRATEGY_STRICT_PACK] = "StrictPack",
                                      [STRATEGY_STRICT_SPREAD] = "StrictSpread",
                                      NULL};
const char *const pod_per_names[] = {[POD_PER_BUNDLE] = "Bundle", [POD_PER_NODE] = "Node", NULL};
static const char *const runtime_names[] = {[RUNTIME_AGENT] = "Agent", [RUNTIME_PLAIN] = "Plain", NULL};
static const char *const restart_names[] = {
    [RESTART_GROUP] = "Group", [RESTART_WORKER] = "Worker", [RESTART_NEVER] = "Never", NULL};
static const char *const success_names[] = {[SUCCESS_ALL] = "All", [SUCCESS_RANK_ZERO] = "RankZero", NULL};
static const char *const action_names[] = {
    [FAILURE_FAIL] = "Fail", [FAILURE_RESTART] = "Restart", [FAILURE_IGNORE] = "Ignore", NULL};

static const char *const gpu_visibility_names[] = {[GPU_VISIBILITY_OWN] = "Own", [GPU_VISIBILITY_ALL] = "All", NULL};

enum { RENDEZVOUS_PORT = 29500 };
enum { CODE_MAX = 256 * 1024, ARCHIVE_MAX = 1 << 30 };
enum { SECONDS_MAX = 86400, REPLICAS_MAX = 10000, WORKERS_MAX = 64, RANKS_MAX = REPLICAS_MAX * WORKERS_MAX };
// Limits for texts of others in the status, so that it stays far below the limit of etcd.
enum { WORD_MAX = 1024, MESSAGE_MAX = 32768, PLACEMENTS_MAX = 1000 };

// clang-format off
static const struct json_table plg_ref_table = JSON_TABLE(struct placementgroup_ref,
    {"name", J_STRING, offsetof(struct placementgroup_ref, name), .required = true},
    {"bundles", J_STRING, offsetof(struct placementgroup_ref, bundles), .left_out = true});
static const struct json_table placement_table = JSON_TABLE(struct workergroup_spec,
    GANG_SPEC_FIELDS(SPEC(gang), POD_PER_BUNDLE),
    {"groups", J_LIST, SPEC(placement_groups), .offset_n = SPEC(n_placement_groups), .table = &plg_ref_table});
static const struct json_table env_table = JSON_TABLE(struct worker_env,
    {"name", J_STRING, offsetof(struct worker_env, name), .required = true},
    {"value", J_STRING, offsetof(struct worker_env, value)},
    {"valueFrom", J_TEXT, offsetof(struct worker_env, value_from)});
static const struct json_table dim_table = JSON_TABLE(struct mesh_spec_dim,
    {"name", J_STRING, offsetof(struct mesh_spec_dim, name), .required = true},
    {"size", J_I32, offsetof(struct mesh_spec_dim, size), .min = 1, .max = RANKS_MAX, .required = true});
static const struct json_table mesh_table = JSON_TABLE(struct mesh_spec,
    {"name", J_STRING, offsetof(struct mesh_spec, name), .required = true},
    {"dims", J_LIST, offsetof(struct mesh_spec, dims), .offset_n = offsetof(struct mesh_spec, n_dims),
     .table = &dim_table, .required = true});
static const struct json_table code_table = JSON_TABLE(struct workergroup_spec,
    {"sha256", J_STRING, WORKER(code_sha256), .required = true},
    {"size", J_I64, WORKER(code_size), .min = 1, .max = CODE_MAX, .required = true},
    {"inline", J_STRING, WORKER(code_inline), .required = true});
static const struct json_table archive_table = JSON_TABLE(struct workergroup_spec,
    {"sha256", J_STRING, WORKER(archive_sha256), .required = true},
    {"size", J_I64, WORKER(archive_size), .min = 1, .max = ARCHIVE_MAX, .required = true});
static const struct json_table worker_table = JSON_TABLE(struct workergroup_spec,
    {"module", J_STRING, WORKER(module)},
    {"python", J_STRING, WORKER(python)},
    {"preload", J_STRINGS, WORKER(preload), .offset_n = WORKER(n_preload)},
    {"code", J_OBJECT, .offset_is = WORKER(has_code), .table = &code_table},
    {"archive", J_OBJECT, .offset_is = WORKER(has_archive), .table = &archive_table},
    {"command", J_STRINGS, WORKER(command), .offset_n = WORKER(n_command)},
    {"args", J_STRINGS, WORKER(args), .offset_n = WORKER(n_args)},
    {"workingDir", J_STRING, WORKER(working_dir)},
    {"class", J_STRING, WORKER(class_name)},
    {"init", J_TEXT, WORKER(init_json)},
    {"roles", J_ITEMS, WORKER(roles_json)},
    {"meshes", J_LIST, WORKER(meshes), .offset_n = WORKER(n_meshes), .table = &mesh_table},
    {"gpus", J_I32, WORKER(gpus), .min = 0, .max = 1024, .missing = -1},
    {"gpuVisibility", J_ENUM, WORKER(gpu_visibility), .names = gpu_visibility_names, .missing = GPU_VISIBILITY_DEFAULT},
    {"restartedAt", J_STRING, WORKER(restarted_at)},
    {"env", J_LIST, WORKER(env), .offset_n = WORKER(n_env), .table = &env_table});
static const struct json_table backoff_table = JSON_TABLE(struct workergroup_spec,
    {"initialSeconds", J_I32, SPEC(backoff_initial_s), .min = 0, .max = SECONDS_MAX, .missing = 1},
    {"maxSeconds", J_I32, SPEC(backoff_max_s), .min = 0, .max = SECONDS_MAX, .missing = 300});
static const struct json_table rule_table = JSON_TABLE(struct failure_rule,
    {"exitCodes", J_I32S, offsetof(struct failure_rule, exit_codes), .min = 1, .max = 255,
     .offset_n = offsetof(struct failure_rule, n_exit_codes), .required = true},
    {"action", J_ENUM, offsetof(struct failure_rule, action), .names = action_names, .required = true});
static const struct json_table failure_policy_table = JSON_TABLE(struct workergroup_spec,
    {"rules", J_LIST, SPEC(failure_rules), .offset_n = SPEC(n_failure_rules), .table = &rule_table});
static const struct json_table spec_table = JSON_TABLE(struct workergroup_spec,
    {"replicas", J_I32, SPEC(replicas), .min = 1, .max = REPLICAS_MAX, .missing = 1},
    {"workersPerReplica", J_I32, SPEC(workers_per_replica), .min = 1, .max = WORKERS_MAX, .missing = 1},
    {"placement", J_OBJECT, .table = &placement_table},
    {"runtime", J_ENUM, SPEC(runtime), .names = runtime_names},
    {"worker", J_OBJECT, .offset_is = SPEC(has_worker), .table = &worker_table},
    {"heartbeatSeconds", J_I32, SPEC(heartbeat_s), .min = 1, .max = 300, .missing = 3},
    {"rendezvousPort", J_I32, SPEC(rendezvous_port), .min = 1, .max = 65535},
    {"restartPolicy", J_ENUM, SPEC(restart_policy), .names = restart_names},
    {"maxRestarts", J_I32, SPEC(max_restarts), .min = 0, .max = INT32_MAX, .missing = 3},
    {"restartBackoff", J_OBJECT, .table = &backoff_table},
    {"successPolicy", J_ENUM, SPEC(success_policy), .names = success_names},
    {"failurePolicy", J_OBJECT, .table = &failure_policy_table},
    {"suspend", J_BOOL, SPEC(suspend)},
    {"activeDeadlineSeconds", J_I64, SPEC(active_deadline_s), .min = 1, .max = INT32_MAX, .missing = -1},
    {"ttlSecondsAfterFinished", J_I64, SPEC(ttl_s), .min = 0, .max = INT32_MAX, .missing = -1},
    {"template", J_TEXT, SPEC(template_json)});

static const struct json_table placements_table = JSON_TABLE(struct node_ranges,
    {"node", J_STRING, offsetof(struct node_ranges, node)},
    {"replicas", J_STRING, offsetof(struct node_ranges, ranges)});
static const struct json_table failure_table = JSON_TABLE(struct group_failure,
    {"rank", J_I32, FAILURE(rank), .missing = -1},
    {"pod", J_STRING, FAILURE(pod)},
    {"node", J_STRING, FAILURE(node)},
    {"exitCode", J_I32, FAILURE(exit_code), .missing = -1},
    {"reason", J_STRING, FAILURE(reason), .max = WORD_MAX},
    {"message", J_STRING, FAILURE(message), .max = MESSAGE_MAX},
    {"time", J_TIME, FAILURE(time_ms), .micro = true}); // the backoff is counted from it
static const struct json_table revision_table = JSON_TABLE(struct workergroup_status,
    {"pods", J_STRING, REVISION(pods)},
    {"worker", J_STRING, REVISION(worker)},
    {"attempt", J_I32, REVISION(attempt)},
    {"replicas", J_I32, REVISION(replicas)},
    {"workersPerReplica", J_I32, REVISION(workers_per_replica)},
    {"groups", J_LIST, REVISION(groups), .offset_n = REVISION(n_groups), .table = &plg_ref_table});
static const struct json_table status_table = JSON_TABLE(struct workergroup_status,
    {"observedGeneration", J_I64, STATUS(observed_generation)},
    {"conditions", J_LIST, STATUS(conditions), .offset_n = STATUS(n_conditions), .table = &condition_table},
    {"worldSize", J_I32, STATUS(world_size)},
    {"readyWorkers", J_I32, STATUS(ready_workers)},
    {"replicas", J_I32, STATUS(replicas)},
    {"scheduledReplicas", J_I32, STATUS(scheduled_replicas)},
    {"readyReplicas", J_I32, STATUS(ready_replicas)},
    {"gpus", J_I32, STATUS(gpus)},
    {"attempt", J_I32, STATUS(attempt)},
    {"incarnation", J_I32, STATUS(incarnation)},
    {"restarts", J_I32, STATUS(restarts)},
    {"restartsCountTowardsMax", J_I32, STATUS(restarts_counted)},
    {"restartsInARow", J_I32, STATUS(restarts_in_a_row)},
    {"masterAddr", J_STRING, STATUS(master_addr)},
    {"strategy", J_STRING, STATUS(strategy)},
    {"selector", J_STRING, STATUS(selector)},
    {"placements", J_LIST, STATUS(placements), .offset_n = STATUS(n_placements), .table = &placements_table,
     .max = PLACEMENTS_MAX},
    {"lastFailure", J_OBJECT, STATUS(last_failure), .table = &failure_table, .needs = "time"},
    {"revision", J_OBJECT, .table = &revision_table, .needs = "pods"});
const struct json_table workergroup_table = JSON_TABLE(struct workergroup,
    {"spec", J_OBJECT, offsetof(struct workergroup, spec), .table = &spec_table, .required = true},
    {"status", J_OBJECT, offsetof(struct workergroup, status), .table = &status_table});
// clang-format on

const char *strategy_name(enum strategy s)
{
    return strategy_names[s];
}

int workergroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err)
{
    struct workergroup_spec *s = &((struct workergroup *)o)->spec;
    (void)scratch;
    int r = json_decode(&workergroup_table, root, "", o, &o->arena, err);
    if (!s->rendezvous_port && !s->n_placement_groups)
        s->rendezvous_port = RENDEZVOUS_PORT;
    return r;
}

const char *workergroup_unknown(const struct json *spec, struct arena *a)
{
    return json_unknown(&spec_table, spec, "spec", a);
}

const char *workergroup_status_patch(const struct workergroup_status *s, struct arena *a)
{
    return json_patch(&status_table, "status", s, a);
}

bool workergroup_status_equal(const struct workergroup_status *a, const struct workergroup_status *b)
{
    return json_same(&status_table, a, b);
}
