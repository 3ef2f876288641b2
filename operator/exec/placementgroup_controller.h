// SPDX-License-Identifier: Apache-2.0
// Answers every PlacementGroup in its status.
#ifndef CADRE_EXEC_PLACEMENTGROUP_CONTROLLER_H
#define CADRE_EXEC_PLACEMENTGROUP_CONTROLLER_H

#include "common/base/loop.h"
#include "operator/kube/client.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/store.h"

struct placementgroup_controller;

// The same life cycle as in group_controller.h.
struct placementgroup_controller *placementgroup_controller_new(struct loop *loop, struct kube_client *client,
                                                                struct store *store, struct metrics *metrics,
                                                                const struct clock *clock);
void placementgroup_controller_start(struct placementgroup_controller *c);
void placementgroup_controller_stop(struct placementgroup_controller *c);
bool placementgroup_controller_idle(const struct placementgroup_controller *c);
void placementgroup_controller_free(struct placementgroup_controller *c);

#endif
