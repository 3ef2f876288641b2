// SPDX-License-Identifier: Apache-2.0
// The input of every decision about a gang, for both kinds of owner, and what the operator remembers between decisions.
#pragma once

#include "operator/api/pod.h"
#include "operator/api/pod_constraints.h"
#include "operator/api/service.h"
#include "operator/placement/cluster.h"
#include "operator/placement/line.h"
#include "operator/reconcile/plan.h"

enum dry_run_state { DRY_RUN_NONE, DRY_RUN_OK, DRY_RUN_REFUSED };
enum { DRY_RUNS_FURTHER = 15 }; // of bundles of other shapes than the first one's

// What the executor learned about a group by trying. Kept in memory only: losing it costs a request, never correctness.
struct gang_memory {
    enum dry_run_state dry_run;
    uint64_t dry_run_hash;               // of the pod that was tried (struct action)
    const struct pod_constraints *needs; // DRY_RUN_OK: what one pod of the group asks for
    const char *dry_run_message;         // DRY_RUN_REFUSED
    const char *dry_run_pod;             // DRY_RUN_OK, PlacementGroups only: the answer itself
    uint64_t further[DRY_RUNS_FURTHER];  // hashes of further pods that passed, the newest last; 0 = none
    // The API server refused to create something of this incarnation, which costs the incarnation: the next one has
    // other names, and is tried after retry_at_ms.
    const char *refusal_reason; // a reason of reason.h, NULL = none
    const char *refusal_message;
    int32_t refusal_incarnation;
    // Gangs given back in a row, the time before which the next one is not tried, and nodes to shun.
    int32_t rollbacks;
    int64_t retry_at_ms;
    const char *const *contended;
    size_t n_contended;
    // "host:port" of the rendezvous that the last decision gave to a group on bundles; NULL = none. Others keep off it
    // before the status says so.
    const char *master;
    // When a status that may wait (counters, passing states) was first wanted; 0 = none waits.
    int64_t status_wanted_ms;
    // The decision before this one, by this process, and what it waited for. 0 = there was none.
    int64_t looked_ms;
    struct patience waits[PATIENCE_KINDS];
};

// What pods with an agent are made with. Keys and addresses come from outside and are there from the start of the
// operator, or some moments later.
struct agent_setup {
    const char *image, *pull_policy; // of the init container; pull_policy NULL = Kubernetes' default
    const char *url;                 // of the operator: wss://host:port
    const char *ca_pem;              // whom the agents trust
    const char *keys_id;             // what the keys of that are called (struct vault_keys); NULL = nothing
    const char *keys_secret;         // the Secret that has them, for messages
    // The one-time ticket of a process. Deterministic.
    const char *(*ticket)(void *ctx, const char *group_uid, int32_t attempt, int32_t rank, struct arena *a);
    void *ctx;
};

struct gang_view {
    const struct pod *const *pods; // of the owner, also terminating ones
    size_t n_pods;
    const struct agent_setup *setup; // NULL = not there yet: pods with an agent cannot be made
    const struct service *service;   // the Service of the gang's name, NULL if it is not known to exist
    const struct cluster *cluster;
    const struct line *line; // those that wait for room; NULL = nobody else does
    const struct gang_memory *memory;
    // Objects of this kind whose status waits, or the most of them since this one's does: the more there are, the
    // longer each of them can.
    int32_t moving;
    int64_t now_ms; // Unix time
};
