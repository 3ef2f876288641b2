// SPDX-License-Identifier: Apache-2.0
// Days of a small cluster in seconds. Gangs of all kinds come and go, other people's pods take free room, nodes are
// lost and come back, kube-scheduler binds and evicts, and the operator dies, also while it creates a gang.
// gang_place() plans with the cluster's accounting and the line, as in the operator.
//
// After every event, these rules are checked against the simulation's own numbers. The planner's accounting is exact.
// No gang has only a part of its pods. No node gets more than it has, except for pods of lower priority that are about
// to go. Only pods of lower priority go for a gang. No gang is planned onto nodes that are held for a gang ahead of it.
// At the end no gang arrives any more, and every gang that could ever be placed has been placed.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct simulation_options {
    uint64_t seed;
    int64_t events;
    int nodes; // of 8 GPUs, 4 in a rack
};

struct simulation_report {
    int64_t events, days;
    int64_t gangs, finished, others, evicted, given_back, nodes_lost, crashes;
    int64_t decisions;
    int64_t holds;                    // decisions about gangs for which nodes are held
    int64_t longest_wait_ms;          // of a gang that was placed in the end
    int64_t longest_wait_of_small_ms; // of a gang that asks for at most a quarter of all GPUs
};

// Returns NULL, or the first violation with the seed and the time.
const char *simulation_run(const struct simulation_options *o, struct simulation_report *ret);
