// SPDX-License-Identifier: Apache-2.0
// The input of a decision about a WorkerGroup.
#pragma once

#include "operator/agents/facts.h"
#include "operator/api/endpointslice.h"
#include "operator/api/placementgroup.h"
#include "operator/api/workergroup.h"
#include "operator/reconcile/reach.h"
#include "operator/reconcile/view.h"

struct neighbour { // another group on the same PlacementGroups, not over, nor suspended
    const char *name;
    const char *master; // as in struct gang_memory, or as its status has it
};

struct group_view {
    const struct workergroup *wg;
    // Where the spec asks for something else by now, what runs: group_before(). NULL = as the spec says.
    const struct workergroup *before;
    // Its pods are all that this object owns (by UID); of a group on bundles those of its PlacementGroups, present ones
    // and those of `before`.
    struct gang_view gang;
    // On bundles
    const struct placementgroup *const
        *placementgroups; // those of spec.placement.groups, in that order; NULL = not there
    const struct service *const *placementgroup_services;       // of each, likewise
    const struct placementgroup *const *placementgroups_before; // those of `before`
    const struct service *const *placementgroup_services_before;
    const struct neighbour *neighbours;
    size_t n_neighbours;
    // Agent runtime
    const struct agent_facts *agents; // of each pod, in the order of `pods`
    size_t running;                   // pods of the cluster in which processes of it may run (on bundles)
    int64_t leading_ms; // Unix time since which this replica decides: agents and workers need a moment to dial in
    struct reach reach; // whether they could
    // By rank: attempt of the worker process that takes calls now, 0 = none; as many as the spec or `before` has.
    const int32_t *members;
    const struct endpointslice *const *slices; // all that are owned by this object
    size_t n_slices;
};
