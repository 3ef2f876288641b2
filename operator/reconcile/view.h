// SPDX-License-Identifier: Apache-2.0
// The input of every decision about a gang, for both kinds of owner, and the operator's memory between decisions.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/service.h"
#include "operator/placement/cluster.h"
#include "operator/placement/line.h"
#include "operator/reconcile/plan.h"

enum dry_run_state { DRY_RUN_NONE, DRY_RUN_OK, DRY_RUN_REFUSED };
enum { DRY_RUNS_FURTHER = 15 }; // dry runs of bundles with further shapes, besides the first shape

// The results of the tries that the operator has made for a gang. It keeps them in memory only. Without them, the
// operator sends a request again, and decides the same.
struct gang_memory {
    enum dry_run_state dry_run;
    uint64_t dry_run_hash;               // of the pod that was tried (struct action)
    const struct pod_constraints *needs; // DRY_RUN_OK: the requests of one pod of the group
    const char *dry_run_message;         // DRY_RUN_REFUSED
    const char *dry_run_pod;             // DRY_RUN_OK, PlacementGroups only: the answer itself
    uint64_t further[DRY_RUNS_FURTHER];  // hashes of further pods that passed, the newest last; 0 = none
    // The API server refused to create something of this incarnation, so the incarnation is given up. The next one has
    // other names, and is tried after retry_at_ms.
    const char *refusal_reason; // a reason of reason.h, NULL = none
    const char *refusal_message;
    int32_t refusal_incarnation;
    // The number of gangs that were given back in a row, the time before which no gang is tried, and the nodes to
    // avoid.
    int32_t given_back;
    int64_t retry_at_ms;
    const char *const *contended;
    size_t n_contended;
    // "host:port" of the rendezvous that the last decision gave to a group on bundles; NULL = none. Other groups
    // already avoid it before the status contains it.
    const char *master;
    // The time at which a status was first wanted that may wait (counters, passing states); 0 = none waits.
    int64_t status_wanted_ms;
    // The time of this process's previous decision, and what that decision waited for. 0 = there was none.
    int64_t looked_ms;
    struct wait waits[WAIT_KINDS];
};

// The settings of pods with an agent. Keys and addresses come from outside. They are there when the operator starts, or
// some moments later.
struct agent_setup {
    const char *image, *pull_policy; // of the init container; pull_policy NULL = Kubernetes' default
    const char *url;                 // of the operator: wss://host:port
    const char *ca_pem;              // the CA that the agents trust
    const char *keys_id;             // the id of these keys (struct vault_keys); NULL = none
    const char *keys_secret;         // the Secret that contains them, for messages
    // The one-time ticket of a process. The same arguments always give the same ticket.
    const char *(*ticket)(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a);
    void *ctx;
};

struct gang_view {
    const struct pod *const *pods; // of the owner, including terminating ones
    size_t n_pods;
    const struct agent_setup *setup; // NULL = not there yet: no pods with an agent can be made
    const struct service *service;   // the Service with the gang's name, NULL if it is not known to exist
    const struct cluster *cluster;
    const struct line *line; // the gangs that wait for room; NULL = no other gang waits
    const struct gang_memory *memory;
    // The number of objects of this kind whose status waits: the present number, or the highest since this object's
    // status waits. The more there are, the longer each status may wait.
    int32_t waiting_statuses;
    int64_t now_ms; // Unix time
};
