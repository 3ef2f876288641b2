// SPDX-License-Identifier: Apache-2.0
// The planner: finds nodes for a whole gang, or says why there are none. Pure and deterministic: same cluster and gang,
// same plan. Cost O(bundles + nodes) a gang (plus sorting) and a shape. Semantics: docs/placement.md.
//
//   Pack          fewest domains; best fit: fill partly used nodes first, keep whole nodes whole, keep gangs without
//                 GPUs off GPU nodes
//   Spread        as many domains as possible, evenly
//   StrictPack    all in one domain, or wait
//   StrictSpread  all domains distinct, or wait
//
// Where free room is short, pods of lower priority count as gone: those of the lowest priority, as few as possible, and
// only if the gang's own pods may preempt.
//
// A domain is the set of nodes with one value of the topology key; a node without that label is in no domain and takes
// nothing. With kubernetes.io/hostname a node is a domain of its own (by name, also where the label is missing).
#ifndef CADRE_PLACEMENT_PLANNER_H
#define CADRE_PLACEMENT_PLANNER_H

#include "operator/api/pod_constraints.h"
#include "operator/api/workergroup.h"
#include "operator/placement/cluster.h"
#include "operator/placement/node_admission.h"

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
    const char *uid; // of the object whose gang it is, NULL = none: its own pods never go for it
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

// Never fails. All memory from the arena, the names of nodes too.
void planner_place(const struct cluster *c, const struct gang *g, struct arena *a, struct placement *ret);

// Where a gang that does not fit will fit with the fewest pods gone: a node for each bundle. Those are the nodes to
// hold for it, so that what is gone is not taken by others. The pods of gangs go before those of other people. False if
// there is no way.
bool planner_target(const struct cluster *c, const struct gang *g, struct arena *a, const char ***ret_nodes);

#endif
