// SPDX-License-Identifier: Apache-2.0
// The state of a WorkerGroup as its pods show it: counted once, then only read.
//
// The pods of a Plain group start and end together: the pods of the present attempt and incarnation are current. With
// an agent, a pod outlives attempts, and only a lost pod is replaced, by the next incarnation. So once a pod of the
// present incarnation exists, the newest pod of each index is current. Before that, the current pods are those that can
// stay: they are alive, and made from the present spec.
#pragma once

#include "operator/reconcile/gang_pods.h"
#include "operator/reconcile/group_bundles.h"
#include "operator/reconcile/ranks.h"

struct group_pods {
    const struct pod **current;          // by index; NULL = missing. On bundles, several replicas share one pod
    const struct group_bundles *bundles; // NULL = the group has pods of its own
    int32_t replicas;                    // length of `current`
    struct gang_pods gang;               // `live` is `current`
    bool begun;                          // a pod of the present incarnation exists
    int32_t ready, succeeded;
    int32_t ready_workers;
    struct ranks ranks; // runtime Agent
    bool *failed;       // by index: the pod itself is lost, and a new one is needed
    int32_t n_failed;
    bool unreachable;             // agents are away, and no other connection proves that they could reach this replica
    bool displaced;               // one of the failed pods cannot come back to its node
    const char *gpu_lost_on;      // the node of that GPU
    const char *gpu_lost;         // the first GPU that fell off the bus, in words; NULL = none
    int32_t mine;                 // pods of the present attempt and incarnation, whatever their index
    bool changed;                 // a pod of the present attempt and incarnation was made from another spec
    struct group_failure failure; // time_ms 0 = no current pod has failed
    int64_t failure_began_ms;     // distinguishes the cause from its consequences
    bool infrastructure;          // the failure is not the user's: eviction, lost node, deleted pod
    struct wait killed;           // the wait for the kubelet to explain a killed container
    int64_t silent_since_ms;      // since when the node of a current pod has been silent but not lost; 0 = none is
};

// If replicas share a pod, the first one receives the commands to the agent for all of them. group_pods_leads() returns
// true for this first one. group_pods_next() returns the next replica in the same pod, -1 = none.
static inline bool group_pods_leads(const struct group_pods *c, int32_t index)
{
    return !c->bundles || c->bundles->replicas[index].first == index;
}
static inline int32_t group_pods_next(const struct group_pods *c, int32_t index)
{
    return c->bundles ? c->bundles->replicas[index].next : -1;
}

void group_pods_take(const struct group_view *v, uint64_t spec_hash, struct arena *a, struct group_pods *ret);

// Decides whether the silence of an agent counts as loss (reach.h). The silence begins at since_ms, or when this
// replica began to lead.
enum reach_verdict group_pods_silence(const struct group_view *v, int64_t since_ms, int64_t limit_ms, int64_t *ret_ms);
