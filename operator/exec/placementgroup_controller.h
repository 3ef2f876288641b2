// SPDX-License-Identifier: Apache-2.0
// Keeps every PlacementGroup as its spec says: snapshot -> plan -> execution for each one that something has changed
// for. It shares the cluster's accounting with the group controller, so both plan with the same room.
#pragma once

#include "operator/exec/group_controller.h"
#include "operator/reconcile/placementgroup_reconcile.h"

struct placementgroup_controller;

// The options are those of the group controller, which subscribed before, and outlives this one. The same life cycle.
struct placementgroup_controller *placementgroup_controller_new(struct loop *loop, struct group_controller *groups,
                                                                const struct group_controller_options *options);
struct entries *placementgroup_controller_entries(struct placementgroup_controller *c); // start and stop these
void placementgroup_controller_free(struct placementgroup_controller *c);
