// SPDX-License-Identifier: Apache-2.0
// The cost of each part of a group for the control plane, without an operator: bare pods, the same with one more part
// of the operator's pods, and each further object of a group; in turns on the same cluster.
#pragma once

#include "bench/groups/contest.h"

enum { PARTS_GROUPS = 50 }; // of GROUP_SIZE pods: a trial

// `rounds` trials of each; the operator must not run. Prints its own table, CPU-milliseconds a pod.
void parts_run(struct bench *b, int rounds);
