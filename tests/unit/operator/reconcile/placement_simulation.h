// SPDX-License-Identifier: Apache-2.0
// Days of a small cluster in seconds: gangs of all kinds come and go, other people's pods take room that they find,
// nodes are lost and come back, kube-scheduler binds and evicts, and the operator dies, also in the middle of creating
// a gang. Planned by gang_place() with the cluster's accounting and the line, as the operator does it.
//
// Checked after every event, against the simulation's own numbers: the planner's accounting is exact, no gang has a
// part of its pods, no node is given more than it has (but for pods of lower priority that go), nothing that is not of
// lower priority goes for a gang, and nobody is planned onto nodes that are held for one ahead. At the end nobody comes
// any more, and everybody who could ever be placed has been.
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
    int64_t longest_wait_ms;          // of a gang that was placed
    int64_t longest_wait_of_small_ms; // of one that asks for at most a quarter of all GPUs
};

// NULL, or what was found to be wrong, with the seed and the time.
const char *simulation_run(const struct simulation_options *o, struct simulation_report *ret);
