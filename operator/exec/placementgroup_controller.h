// SPDX-License-Identifier: Apache-2.0
// Keeps every PlacementGroup as its spec says: snapshot -> plan -> execution for each one that something has changed
// for. It shares the cluster's accounting with the group controller, so both plan with the same room.
#pragma once

#include "operator/exec/group_controller.h"
#include "operator/reconcile/placementgroup_reconcile.h"

struct placementgroup_controller;

struct placementgroup_controller_options {
    struct kube_client *client;
    struct store *pods, *nodes, *services, *placementgroups; // the controller subscribes to them
    struct group_controller *groups;   // whose cluster is planned with, and which subscribed before; outlives this one
    const struct territory *territory; // as in group_controller.h
    struct recorder *recorder;
    struct metrics *metrics;
    const struct clock *clock;
    uint64_t seed;
};

// The same life cycle as in group_controller.h.
struct placementgroup_controller *placementgroup_controller_new(
    struct loop *loop, const struct placementgroup_controller_options *options);
void placementgroup_controller_start(struct placementgroup_controller *c);
void placementgroup_controller_stop(struct placementgroup_controller *c);
void placementgroup_controller_retry(struct placementgroup_controller *c);
void placementgroup_controller_look(struct placementgroup_controller *c);
bool placementgroup_controller_idle(const struct placementgroup_controller *c);
void placementgroup_controller_free(struct placementgroup_controller *c);
