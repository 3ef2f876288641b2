// SPDX-License-Identifier: Apache-2.0
// What PlacementGroups of one bundle cost the control plane by nobody's operator: bare pods, the pods that the operator
// makes, the objects, and all of it in the order in which the operator does it, created and deleted by the benchmark;
// in turns on the same cluster.
#pragma once

#include "bench/groups/contest.h"

enum { FLOOR_GROUPS = 100 }; // a trial

// `rounds` trials of each; the operator must not run. Prints its own table.
void floor_run(struct bench *b, int rounds);
