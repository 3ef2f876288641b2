// SPDX-License-Identifier: Apache-2.0
// The planner: finds nodes for a whole gang, or says why there are none. Pure and deterministic: the same cluster and
// gang give the same placement. A gang costs O(bundles + nodes) per shape, plus sorting. Semantics: docs/placement.md.
//
//   Pack          fewest domains; best fit: fill partly used nodes first, keep whole nodes whole, keep gangs without
//                 GPUs off GPU nodes
//   Spread        as many domains as possible, evenly
//   StrictPack    all in one domain, or wait
//   StrictSpread  all domains distinct, or wait
//
// If free room is short and the gang's pods may preempt, pods of lower priority count as gone: pods of the lowest
// priority first, and as few as possible.
//
// A domain is the set of nodes with one value of the topology key. A node without that label is in no domain and takes
// nothing. With kubernetes.io/hostname, each node is its own domain (by its name, even if the label is missing).
#pragma once

#include "operator/placement/cluster.h"
#include "operator/placement/placement.h"

// Never fails. All memory comes from the arena, including the names of nodes.
void planner_place(const struct cluster *c, const struct gang *g, struct arena *a, struct placement *ret);

// The nodes where a gang that does not fit will fit after the fewest pods have gone: one for each bundle. The line
// holds these nodes for it, so that others do not take the room of the pods that go. Pods of gangs are chosen to go
// before pods of other people. Returns false if there is no way.
bool planner_target(const struct cluster *c, const struct gang *g, struct arena *a, const char ***ret_nodes);
