// SPDX-License-Identifier: Apache-2.0
// WorkerGroup, as in crds/. The API server has already set the defaults of the schema. The decoder sets all other
// defaults; the fields say which.
#pragma once

#include "common/base/json.h"
#include "operator/api/condition.h"
#include "operator/api/object.h"
#include "operator/api/resource.h"

struct json;
struct json_table;

enum strategy { STRATEGY_PACK, STRATEGY_SPREAD, STRATEGY_STRICT_PACK, STRATEGY_STRICT_SPREAD };
enum pod_per { POD_PER_BUNDLE, POD_PER_NODE };
enum runtime_kind { RUNTIME_AGENT, RUNTIME_PLAIN };
enum restart_policy { RESTART_GROUP, RESTART_WORKER, RESTART_NEVER };
enum success_policy { SUCCESS_ALL, SUCCESS_RANK_ZERO };
enum failure_action { FAILURE_FAIL, FAILURE_RESTART, FAILURE_IGNORE };
enum gpu_visibility { GPU_VISIBILITY_OWN, GPU_VISIBILITY_ALL, GPU_VISIBILITY_DEFAULT };

const char *strategy_name(enum strategy s); // "StrictPack"

struct worker_env {
    const char *name, *value;
    const char *value_from; // JSON, NULL = none
};

struct placementgroup_ref { // an entry of spec.placement.groups
    const char *name;
    const char *bundles; // "0-3,6", NULL = all
};

struct mesh_spec_dim {
    const char *name;
    int32_t size;
};

struct mesh_spec {
    const char *name;
    struct mesh_spec_dim *dims; // row-major, the last one fastest
    size_t n_dims;
};

struct worker_spec {
    const char *module, *python; // at most one of these and command; NULL = not given
    bool has_code;               // spec.worker has the code of the class, so the module does not
    const char *code_sha256;
    int64_t code_size;       // bytes
    const char *code_inline; // base64
    bool has_archive;
    const char *archive_sha256; // of an archive of folders that the ranks import from
    int64_t archive_size;       // bytes
    const char **preload;       // modules that the template process of a pod imports
    const char **command, **args;
    size_t n_preload, n_command, n_args;
    const char *working_dir, *class_name;
    const char *init_json; // verbatim, NULL = not given
    struct worker_env *env;
    size_t n_env;
    int32_t gpus;                       // of one worker, -1 = an equal share of the GPUs of the replica
    enum gpu_visibility gpu_visibility; // default: Own with module, else All
    const char *restarted_at;           // NULL = not given; a change restarts the processes
    const char *roles_json;             // verbatim; NULL = not given, or empty
    struct mesh_spec *meshes;
    size_t n_meshes;
};

struct failure_rule {
    int32_t *exit_codes;
    size_t n_exit_codes;
    enum failure_action action;
};

// How a gang is placed, and how long its pods are waited for. Both kinds of objects have these members.
struct gang_spec {
    enum strategy strategy;   // default Pack
    const char *topology_key; // default "kubernetes.io/hostname"
    enum pod_per pod_per;     // default Bundle; of a PlacementGroup Node
    int32_t timeout_s;        // for kube-scheduler to bind all pods; default 300
    int32_t node_lost_s;      // a node that is silent for longer is lost; default 60
};

struct workergroup_spec {
    int32_t replicas;
    int32_t workers_per_replica;
    struct gang_spec gang; // from placement
    struct placementgroup_ref *placement_groups;
    size_t n_placement_groups; // 0 = the group has its own pods
    enum runtime_kind runtime;
    bool has_worker; // spec.worker is there
    struct worker_spec worker;
    int32_t heartbeat_s;     // default 3
    int32_t rendezvous_port; // default 29500; with placement groups, 0 = the operator chooses one
    enum restart_policy restart_policy;
    int32_t max_restarts;
    int32_t backoff_initial_s, backoff_max_s;
    enum success_policy success_policy;
    struct failure_rule *failure_rules; // the first rule with the exit code wins
    size_t n_failure_rules;
    bool suspend;
    int64_t active_deadline_s; // -1 = none
    int64_t ttl_s;             // ttlSecondsAfterFinished, -1 = none
    const char *template_json; // spec.template verbatim, NULL if missing
};

struct group_failure {
    int32_t rank; // -1 = unknown
    const char *pod, *node, *reason, *message;
    int32_t exit_code; // -1 = none
    int64_t time_ms;   // 0 = there was no failure
};

// The spec that the present attempt is made from. Hashes as text, NULL = not known.
struct group_revision {
    const char *pods;   // of all fields that need new pods if they change
    const char *worker; // of the other fields: a change restarts the processes in the same pods
    int32_t attempt;    // the first attempt that was made from this worker
    // Members of that spec, to recognize it while another spec waits; replicas 0 = not known.
    int32_t replicas, workers_per_replica;
    struct placementgroup_ref *groups;
    size_t n_groups;
};

struct node_ranges { // the replicas or bundles on one node
    const char *node;
    const char *ranges; // their indexes: "0-3" or "0,2-3"
};

struct workergroup_status {
    int64_t observed_generation;
    int32_t world_size, ready_workers;
    int32_t replicas, ready_replicas, scheduled_replicas;
    int32_t gpus;                                             // of all replicas together
    int32_t attempt, incarnation, restarts, restarts_counted; // restartsCountTowardsMax
    int32_t restarts_in_a_row;      // since the last restart after which the group was healthy for a time
    const char *master_addr;        // "host:port"
    const char *selector;           // for the scale subresource
    const char *strategy;           // effective, for the PLACEMENT column
    struct node_ranges *placements; // only the first 1,000 nodes are written
    size_t n_placements;
    struct group_failure last_failure;
    struct group_revision revision;
    struct condition *conditions;
    size_t n_conditions;
};

struct workergroup {
    struct object obj;
    struct workergroup_spec spec;
    struct workergroup_status status;
};

static inline const struct workergroup *workergroup_of(const struct object *o)
{
    return (const struct workergroup *)o;
}

static inline bool workergroup_has_agent(const struct workergroup *wg)
{
    return wg->spec.runtime == RUNTIME_AGENT;
}

// Returns the path of the first unknown member of spec ("spec.replica"), which kubectl refuses, too; NULL if all are
// known.
const char *workergroup_unknown(const struct json *spec, struct arena *a);
// Returns the status as a merge patch for the /status subresource ({"status": {...}}). Lists are complete, missing
// values are null.
const char *workergroup_status_patch(const struct workergroup_status *s, struct arena *a);
// Returns true if both would be written alike. Does not compare the lastTransitionTime of a condition.
bool workergroup_status_equal(const struct workergroup_status *a, const struct workergroup_status *b);

// For object_decode().
int workergroup_decode(struct object *o, const struct json *root, struct arena *scratch, struct err *err);
extern const struct json_table workergroup_table; // for the test that compares it with crds/
extern const char *const strategy_names[], *const pod_per_names[];
// The fields of a struct gang_spec at this offset, for a field table. `pods` is the default of podPer.
// clang-format off
#define GANG_SPEC(at, member) (at) + offsetof(struct gang_spec, member)
#define GANG_SPEC_FIELDS(at, pods) \
    {"strategy", J_ENUM, GANG_SPEC(at, strategy), .names = strategy_names}, \
    {"topologyKey", J_STRING, GANG_SPEC(at, topology_key), .missing_str = "kubernetes.io/hostname"}, \
    {"podPer", J_ENUM, GANG_SPEC(at, pod_per), .names = pod_per_names, .missing = pods}, \
    {"timeoutSeconds", J_I32, GANG_SPEC(at, timeout_s), .min = 1, .max = 86400, .missing = 300}, \
    {"nodeLostSeconds", J_I32, GANG_SPEC(at, node_lost_s), .min = 1, .max = 86400, .missing = 60}
// clang-format on
