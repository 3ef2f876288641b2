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
#pragma once

#include "operator/placement/cluster.h"
#include "operator/placement/placement.h"

// Never fails. All memory from the arena, the names of nodes too.
void planner_place(const struct cluster *c, const struct gang *g, struct arena *a, struct placement *ret);

// Where a gang that does not fit will fit with the fewest pods gone: a node for each bundle. Those are the nodes to
// hold for it, so that what is gone is not taken by others. The pods of gangs go before those of other people. False if
// there is no way.
bool planner_target(const struct cluster *c, const struct gang *g, struct arena *a, const char ***ret_nodes);
