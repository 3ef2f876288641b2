// SPDX-License-Identifier: Apache-2.0
// The processes of a group whose pods all exist, runtime Agent: prepare every agent, start all processes at once, then
// watch. The reports of the agents are compared with the present attempt, so it does not matter which operator began
// it.
#pragma once

#include "operator/reconcile/work.h"

// All pods are bound, and no failure is to be answered: what their processes need, and Ready.
void processes_run(struct work *w);
// Some run for the present attempt, and others can never join them: none starts before all are prepared. So it is where
// the policy was another one when they were started, or a pod came again behind a leader's back.
bool processes_mixed(const struct work *w);
