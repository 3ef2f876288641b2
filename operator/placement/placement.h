// SPDX-License-Identifier: Apache-2.0
// The question to the planner, a gang, and its answer, a placement.
#pragma once

#include "operator/api/pod_constraints.h"
#include "operator/api/workergroup.h"

struct bundle {
    const struct pod_constraints *constraints; // bundles that share the pointer are identical: planned as one shape
    const char *fixed_node;                    // already placed there (counted in the cluster); NULL = to be placed
};

struct gang {
    enum strategy strategy;
    const char *topology_key; // NULL or "" = kubernetes.io/hostname
    const struct bundle *bundles;
    size_t n_bundles;
    const char *const *avoid; // nodes lately contended: taken only if there is no other way
    size_t n_avoid;
    const char *const *held; // nodes that are held for others: not taken
    size_t n_held;
    const char *uid, *ns; // of the object whose gang it is, NULL = none: its own pods never go for it
};

enum verdict {
    VERDICT_PLACED,
    VERDICT_INSUFFICIENT, // fits once others leave
    VERDICT_INFEASIBLE,   // the nodes that exist could never take it, even if they were empty
};

// With one shape the answer is exact: a placement is found whenever there is one. With several it is a good try
// (hardest shape first, best fit), so that in rare cases a gang is told to wait that could be squeezed in.
struct placement {
    enum verdict verdict;
    const char **nodes; // PLACED: one a bundle. Bundles of one shape are sorted by domain, node, index in natural
                        // order, so that neighbouring ranks share nodes.
    size_t n_victims;   // pods of lower priority that kube-scheduler has to evict for it; 0 = there is free room
    // One line for people when not placed, with counts that add up to the number of nodes, for example
    // "needs 4 x 8 free nvidia.com/gpu on 4 different nodes, found 3; 3 of 9 nodes have room (5 full, 1 cordoned)".
    const char *message;
    // More of it, one thing a line: the nearest fit, and who has what is short. NULL if there is no more to say.
    const char *details;
    int short_of; // the resource that is short, -1 = only all of them together are
};
