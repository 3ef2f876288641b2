// SPDX-License-Identifier: Apache-2.0
// The input of a decision about a WorkerGroup.
#pragma once

#include "operator/agents/facts.h"
#include "operator/api/endpointslice.h"
#include "operator/api/placementgroup.h"
#include "operator/api/workergroup.h"
#include "operator/reconcile/reach.h"
#include "operator/reconcile/view.h"

struct other_user { // another group on the same PlacementGroups that has not ended and is not suspended
    const char *name;
    const char *master; // as in struct gang_memory, or as in its status
};

struct group_view {
    const struct workergroup *wg;
    // The group as it runs, if its spec has changed since: running_spec(). NULL = it runs as the spec says.
    const struct workergroup *as_running;
    // The pods in it are all that this object owns (by UID). A group on bundles has the pods of its PlacementGroups
    // instead: the present ones and the ones of `as_running`.
    struct gang_view gang;
    // On bundles: one per entry of spec.placement.groups, in that order; NULL = it does not exist
    const struct placementgroup *const *placementgroups;
    const struct service *const *placementgroup_services; // their Services, in the same order; NULL = it does not exist
    const struct placementgroup *const *placementgroups_running; // the PlacementGroups of `as_running`
    const struct service *const *placementgroup_services_running;
    const struct other_user *other_users;
    size_t n_other_users;
    // Agent runtime
    const struct agent_facts *agents; // one per pod, in the order of `pods`
    size_t running;                   // pods of the cluster in which processes of the group may run (on bundles)
    int64_t leading_ms; // Unix time since which this replica decides: agents and workers need a moment to connect
    struct reach reach; // whether they could connect
    // By rank: the attempt of the worker process that takes calls now, 0 = none. As many as the spec or `before` has
    // ranks.
    const int32_t *members;
    const struct endpointslice *const *slices; // all that this object owns
    size_t n_slices;
};
