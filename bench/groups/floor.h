// SPDX-License-Identifier: Apache-2.0
// The cost of PlacementGroups of one bundle for the control plane, without an operator. In turns, on the same cluster,
// the benchmark creates and deletes bare pods, the pods that the operator makes, the objects, and all of them in the
// operator's order.
#pragma once

#include "bench/groups/contest.h"

enum { FLOOR_GROUPS = 100 }; // a trial

// `rounds` trials of each; the operator must not run. Prints its own table.
void floor_run(struct bench *b, int rounds);
