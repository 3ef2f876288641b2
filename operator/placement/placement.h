// SPDX-License-Identifier: Apache-2.0
// The question to the planner, a gang, and its answer, a placement.
#pragma once

#include "operator/api/pod_constraints.h"
#include "operator/api/workergroup.h"

struct bundle {
    const struct pod_constraints *constraints; // bundles with the same pointer are identical: planned as one shape
    const char *fixed_node;                    // already placed there (counted in the cluster); NULL = to be placed
};

struct gang {
    enum strategy strategy;
    const char *topology_key; // NULL or "" = kubernetes.io/hostname
    const struct bundle *bundles;
    size_t n_bundles;
    const char *const *avoid; // nodes that were contended lately: taken only if there is no other way
    size_t n_avoid;
    const char *const *held; // nodes that are held for others: not taken
    size_t n_held;
    const char *uid, *ns; // of the gang's owner, NULL = none: its own pods are never evicted for it
};

enum placement_verdict {
    VERDICT_PLACED,
    VERDICT_INSUFFICIENT, // fits once others leave
    VERDICT_INFEASIBLE,   // the nodes that exist could never take it, even if they were empty
};

// With one shape the answer is exact: if there is a placement, it is found. With several shapes (hardest shape first,
// best fit), the planner may miss a placement. The gang then waits.
struct placement {
    enum placement_verdict verdict;
    const char **nodes; // PLACED: one per bundle. Bundles of one shape are sorted by domain, node, index in natural
                        // order, so that neighbouring ranks share nodes.
    size_t n_victims;   // pods of lower priority that kube-scheduler has to evict for it; 0 = there is free room
    // One line for people if it is not placed, with counts that add up to the number of nodes. For example "needs 4 x 8
    // free nvidia.com/gpu on 4 different nodes, found 3; 3 of 9 nodes have room (5 full, 1 cordoned)".
    const char *message;
    // More, one thing per line: the nearest fit, and who uses the resource that is short. NULL if there is no more to
    // say.
    const char *details;
    int short_of; // the resource that is short, -1 = only all of them together are
};
