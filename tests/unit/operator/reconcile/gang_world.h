// SPDX-License-Identifier: Apache-2.0
// A small Kubernetes in memory. It has one gang, which is a WorkerGroup or a PlacementGroup named ml/sim, the pods and
// the Service of the gang, and some nodes. As time passes, the API server, kube-scheduler and the kubelets act on them.
// Every change is a numbered entry of a log. Mirrors (the caches of an operator and of its standby) are filled from
// this log, early or late.
#pragma once

#include "common/base/rand.h"
#include "operator/api/node.h"
#include "operator/api/placementgroup.h"
#include "operator/api/pod.h"
#include "operator/api/service.h"
#include "operator/api/workergroup.h"
#include "tests/unit/operator/reconcile/group_agent.h"
#include "tests/unit/operator/reconcile/sim_log.h"

enum { SIM_NODES = 4, SIM_PODS = 64, SIM_FOREIGN = 4, SIM_BUNDLES = 8, SIM_LATE = 8 };

enum sim_mode { SIM_RUNS_ON, SIM_SUCCEEDS, SIM_FAILS }; // what the ranks do when they all run

struct sim_spec {
    int32_t replicas, max_restarts;
    int template_version;
    bool template_valid, suspend, never_restart, strict_pack;
    bool agent;           // runtime Agent
    bool module;          // its processes take calls
    bool restarts_worker; // restartPolicy Worker
    int worker_version;   // what the processes of an agent are made from
    bool rank_zero;       // successPolicy RankZero
    int32_t deadline_s;   // activeDeadlineSeconds, 0 = none
    const char *rule;     // action for exit code 137, NULL = none
};

struct sim_bundles { // spec of a PlacementGroup
    const char *strategy, *pod_per;
    int32_t n;   // of one GPU each
    int version; // of the template
};

struct sim_pod {
    const struct pod *base;                          // as created
    const struct pod *now;                           // as the API server shows it; NULL: the slot is free
    int32_t index, attempt, incarnation, world_size; // of the rank in it
    enum pod_phase phase;
    const char *node, *disruption;
    int64_t created_ms, asked_ms, gone_ms; // asked_ms: its deletion was requested; gone_ms: the kubelet has ended it
    bool terminated;
    int32_t exit_code;
    int64_t finished_ms;
    struct sim_agent *agent; // NULL: its container does not run, or runtime Plain
    const char *ip;          // once the pod runs
};

struct sim_node {
    const struct object *now; // NULL: removed
    char name[8];
    bool ready;
    int64_t changed_ms;
    int32_t gpus, foreign; // foreign: GPUs that others use, which the operator can see
    bool contended;        // others use the room, which the operator cannot see
};

struct sim_late { // a creation that its operator has given up
    const char *body;
    int64_t at_ms;
};

struct sim_world {
    struct rand rand;
    int64_t now_ms;
    struct arena arena;         // names and the like, until the end
    struct sim_spec spec;       // of a WorkerGroup
    struct sim_bundles bundles; // of a PlacementGroup
    bool used;                  // some WorkerGroup names the PlacementGroup
    enum sim_mode mode;
    int64_t generation;
    enum kind kind;
    const struct object *gang; // of that kind
    const char *status;        // JSON, NULL: never written
    const struct object *service, *slice;
    const char *slice_metadata, *slice_json;
    struct sim_pod pods[SIM_PODS];
    int32_t launched[SIM_PODS]; // by rank: the latest attempt in which it began
    struct sim_node nodes[SIM_NODES];
    struct sim_late late[SIM_LATE];
    size_t n_late;
    int32_t quota;  // of pods
    bool forbidden; // the API server takes no pods at present
    bool calm;      // nothing goes wrong any more
    struct sim_log log;
    int64_t uids; // the number of UIDs given to pods
    // For agents:
    struct agents *registries[SIM_LINES]; // of the leader and its standby; NULL = not there
    bool peers_changed;                   // other ranks take calls than before
    bool deaf[SIM_LINES];                 // nobody can connect to it
    int n_deleted;                        // pods whose deletion was requested
};

void sim_init(struct sim_world *w, uint64_t seed); // with a WorkerGroup
void sim_init_bundles(struct sim_world *w, uint64_t seed, const struct sim_bundles *spec);
void sim_done(struct sim_world *w);
bool sim_chance(struct sim_world *w, int percent);

void sim_pass(struct sim_world *w, int64_t ms); // time passes; scheduler, kubelets and garbage collectors act

// The API server. The functions return 0, or an error as the real one does: ERR_EXISTS, ERR_NOT_FOUND, ERR_CONFLICT,
// ERR_FORBIDDEN (*err says "exceeded quota" if that is the cause), ERR_INVALID.
int sim_create_pod(struct sim_world *w, const char *body, bool dry_run, struct err *err);
int sim_create_pod_late(struct sim_world *w,
                        const char *body); // returns ERR_TIMEOUT; sim_land() creates the pod, within 30 s
void sim_land(struct sim_world *w);
int sim_delete_pod(struct sim_world *w, const char *name, const char *uid, int64_t grace_s);
int sim_create_service(struct sim_world *w, const char *body);
int sim_create_slice(struct sim_world *w, const char *body);
int sim_patch_slice(struct sim_world *w, const char *body);
int sim_patch_status(struct sim_world *w, const char *body);
struct sim_pod *sim_pod(struct sim_world *w, const char *name); // NULL if there is none

// Actions of people, and events by chance.
void sim_edit(struct sim_world *w, const struct sim_spec *spec);
void sim_edit_bundles(struct sim_world *w, const struct sim_bundles *spec);
void sim_delete_service(struct sim_world *w);
void sim_delete_slice(struct sim_world *w);
void sim_node_ready(struct sim_world *w, struct sim_node *n, bool ready);
void sim_node_remove(struct sim_world *w, struct sim_node *n);
void sim_node_add(struct sim_world *w, struct sim_node *n);
struct sim_pod *sim_any_pod(struct sim_world *w); // a pod that is bound and lives; NULL = none
void sim_evict(struct sim_world *w, struct sim_pod *p);
void sim_fail(struct sim_world *w, struct sim_pod *p);

void sim_cut_all(struct sim_world *w,
                 int line);            // cuts the lines of all agents, as when this process of the operator dies
void sim_promote(struct sim_world *w); // the lines to the standby become the lines to the leader

// For agents.
bool sim_all_run(struct sim_world *w, int attempt);          // all ranks run, or have ended well
void sim_launched(struct sim_world *w, struct sim_agent *g); // checks that the process may start

// Host names of the group's pods: how many there are, and the address of one, NULL = none.
size_t sim_names(const struct sim_world *w);
const char *sim_address(struct sim_world *w, int32_t index);

bool sim_live(const struct sim_pod *p);                             // exists and has not ended
bool sim_going(const struct sim_world *w, const struct sim_pod *p); // the pod will be gone soon
