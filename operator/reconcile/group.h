// SPDX-License-Identifier: Apache-2.0
// The decision about one WorkerGroup. Pure: what it sees is in the view, what it wants is in the plan.
#ifndef CADRE_RECONCILE_GROUP_H
#define CADRE_RECONCILE_GROUP_H

#include "operator/agents/facts.h"
#include "operator/api/endpointslice.h"
#include "operator/api/placementgroup.h"
#include "operator/api/service.h"
#include "operator/api/workergroup.h"
#include "operator/placement/cluster.h"
#include "operator/placement/line.h"
#include "operator/reconcile/plan.h"
#include "operator/reconcile/reach.h"

enum dry_run_state { DRY_RUN_NONE, DRY_RUN_OK, DRY_RUN_REFUSED };
enum { DRY_RUNS_FURTHER = 15 }; // of bundles of other shapes than the first one's

// What the executor learned about a group by trying. Kept in memory only: losing it costs a request, never correctness.
struct group_memory {
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

struct neighbour { // another group on the same PlacementGroups, not over, nor suspended
    const char *name;
    const char *master; // as in struct group_memory, or as its status has it
};

struct group_view {
    const struct workergroup *wg;
    // Where the spec asks for something else by now, what runs: group_before(). NULL = as the spec says.
    const struct workergroup *before;
    // All pods owned by this object (by UID), also terminating ones; of a group on bundles those of its
    // PlacementGroups, present ones and those of `before`.
    const struct pod *const *pods;
    size_t n_pods;
    // On bundles
    const struct placementgroup *const *pools;        // those of spec.placement.groups, in that order; NULL = not there
    const struct service *const *pool_services;       // of each, likewise
    const struct placementgroup *const *pools_before; // those of `before`
    const struct service *const *pool_services_before;
    const struct neighbour *neighbours;
    size_t n_neighbours;
    // Agent runtime
    const struct agent_setup *setup;  // NULL = not there yet: pods cannot be made
    const struct agent_facts *agents; // of each pod, in the order of `pods`
    size_t running;                   // pods of the cluster in which processes of it may run (on bundles)
    int64_t leading_ms; // Unix time since which this replica decides: agents and workers need a moment to dial in
    struct reach reach; // whether they could
    // By rank: attempt of the worker process that takes calls now, 0 = none; as many as the spec or `before` has.
    const int32_t *members;
    const struct service *service;             // the Service of the group's name, NULL if it is not known to exist
    const struct endpointslice *const *slices; // all that are owned by this object
    size_t n_slices;
    const struct cluster *cluster;
    const struct line *line; // those that wait for room; NULL = nobody else does
    const struct group_memory *memory;
    // Groups of the cluster whose status waits, or the most of them since this one's does: the more there are, the
    // longer each of them can.
    int32_t moving;
    int64_t now_ms; // Unix time
};

// Never fails: what is wrong with the object is said in its conditions.
void group_reconcile(const struct group_view *v, struct arena *a, struct plan *ret);

// Wait before the n-th try (n = 1, 2, ...): initial * 2^(n-1), at most max, plus up to a tenth of jitter drawn from
// seed.
int64_t group_backoff_ms(int64_t initial_ms, int64_t max_ms, int32_t n, uint64_t seed);

#endif
