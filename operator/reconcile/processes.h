// SPDX-License-Identifier: Apache-2.0
// The processes of a group whose pods all exist, runtime Agent: prepare every agent, start all processes at once, then
// watch. The reports of the agents are compared with the present attempt, so it does not matter which operator began
// the attempt.
#pragma once

#include "operator/reconcile/group_decision.h"

// Call this when all pods are bound and there is no failure to answer. It adds the next commands and sets Ready.
void processes_run(struct group_decision *d);
// Returns true if some processes run for the present attempt, and others can never join them, because none starts
// before all are prepared. This happens if the restart policy was another one when the processes started, or if a pod
// came back without the leader noticing.
bool processes_mixed(const struct group_decision *d);
