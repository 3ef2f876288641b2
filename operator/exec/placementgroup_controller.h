// SPDX-License-Identifier: Apache-2.0
// Keeps every PlacementGroup as its spec says. It runs snapshot -> plan -> execution for each one that has changed. It
// shares the cluster's accounting with the group controller, so both plan with the same room.
#pragma once

#include "operator/exec/group_controller.h"
#include "operator/reconcile/placementgroup_reconcile.h"

struct placementgroup_controller;

// Takes the options of the group controller. The group controller must have subscribed before, and must outlive this
// one. Both have the same life cycle.
struct placementgroup_controller *placementgroup_controller_new(struct loop *loop, struct group_controller *groups,
                                                                const struct group_controller_options *options);
// The caller starts and stops these.
struct reconciler *placementgroup_controller_reconciler(struct placementgroup_controller *c);
void placementgroup_controller_free(struct placementgroup_controller *c);
