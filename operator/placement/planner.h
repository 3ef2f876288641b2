// SPDX-License-Identifier: Apache-2.0
// The planner: finds nodes for a whole gang, or says why there are none. Pure and deterministic: same cluster and gang,
// same plan. Cost O(bundles + nodes) a gang (plus sorting). Semantics: docs/placement.md.
//
//   Pack          fewest domains; best fit: fill partly used nodes first, keep whole nodes whole, keep gangs without
//                 GPUs off GPU nodes
//   Spread        as many domains as possible, evenly
//   StrictPack    all in one domain, or wait
//   StrictSpread  all domains distinct, or wait
//
// A domain is the set of nodes with one value of the topology key; a node without that label is in no domain and takes
// nothing. With kubernetes.io/hostname a node is a domain of its own (by name, also where the label is missing).
#ifndef CADRE_PLACEMENT_PLANNER_H
#define CADRE_PLACEMENT_PLANNER_H

#include "operator/api/workergroup.h"
#include "operator/placement/cluster.h"

struct bundle {
    const struct pod_constraints *constraints; // bundles that share the pointer are identical: planned as one shape
    const char *fixed_node;                    // already placed there (counted in the cluster); NULL = to be placed
};

struct gang {
    enum strategy strategy;
    const char *topology_key;
    const struct bundle *bundles;
    size_t n_bundles;
    const char *const *avoid; // nodes lately contended: taken only if there is no other way
    size_t n_avoid;
};

enum verdict {
    VERDICT_PLACED,
    VERDICT_INSUFFICIENT, // fits once others leave
    VERDICT_INFEASIBLE,   // the nodes that exist could never take it, even if they were empty
};

struct placement {
    enum verdict verdict;
    const char **nodes; // PLACED: one a bundle. Bundles of one shape are sorted by domain, node, index in natural order,
                        // so that neighbouring ranks share nodes.
    // One line for people when not placed, with counts that add up to the number of nodes, for example
    // "needs 4 nodes with 8 free nvidia.com/gpu; 3 of 9 have them (4 full, 1 cordoned, 1 not ready)".
    const char *message;
};

// Never fails. Memory from the arena; node names stay valid as long as the cluster keeps the nodes, so they are copied.
void planner_place(const struct cluster *c, const struct gang *g, struct arena *a, struct placement *ret);

// May a pod with these constraints run on this node at all (ignoring what is used)? For the tests' oracle too.
enum node_verdict {
    NODE_OK,
    NODE_CORDONED,
    NODE_NOT_READY,
    NODE_TAINTED,    // a NoSchedule or NoExecute taint that is not tolerated
    NODE_UNMATCHED,  // nodeSelector or required affinity
    NODE_TOO_SMALL,  // allocatable is less than the request
    NODE_NO_DOMAIN,  // lacks the topology key
};
enum node_verdict node_admits(const struct node *n, const struct pod_constraints *p, const char *topology_key);

#endif
