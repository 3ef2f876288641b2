// SPDX-License-Identifier: Apache-2.0
// PlacementGroups: created all at once until all of their pods run and all are Ready, then deleted until all pods are
// gone; against as many bare pods as they have, pinned by the benchmark.
#pragma once

#include "bench/groups/contest.h"
#include "bench/groups/requests.h"

struct placementgroups {                               // milliseconds, a value a round
    struct samples bare_running, bare_gone, bare_both; // both: created and deleted
    struct samples running, ready, gone, both;
    struct samples bare_cpu, cpu; // seconds, of all components
    struct samples rate;          // PlacementGroups a second, created and deleted
    struct samples writes;        // of the operator, a PlacementGroup
    struct samples operator_cpu;
    struct samples bare_requests, requests; // that the API server answered to all clients, for a PlacementGroup
    struct requests bare_kinds, kinds;      // the same by kind, of all rounds
    struct side bare_side, side;            // their CPU by component
};

// `bundles` in each, with a pod each.
void placementgroups_run(struct bench *b, int groups, int bundles, int rounds, struct placementgroups *ret);
void placementgroups_report(const struct bench *b, const char *size, int groups, const struct placementgroups *r,
                            double factor);
