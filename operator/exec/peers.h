// SPDX-License-Identifier: Apache-2.0
// Collects for decisions what the agents of a group's pods report, and what the router of its calls knows.
#pragma once

#include "operator/agents/agents.h"
#include "operator/agents/replica_reports.h"
#include "operator/proxy/router.h"
#include "operator/reconcile/group_reconcile.h"
#include "operator/runtime/store.h"

struct peers { // all borrowed; NULL = there are none
    const struct agents *agents;
    const struct router *router;
    const struct replica_reports *reports;
};

// Returns how well this replica reaches its peers. `expected` is the number of pods that run with an agent.
struct reach peers_reach(const struct peers *p, size_t expected, int64_t listening_ms, struct arena *a);
// Return `agents` and `members` of a view.
const struct agent_facts *peers_agents(const struct peers *p, const struct workergroup *wg,
                                       const struct pod *const *pods, size_t n, struct arena *a);
const int32_t *peers_members(const struct peers *p, const struct group_view *v, struct arena *a);
// Returns the pod of a rank of a group with its own pods, in the newest incarnation. NULL = it is not known.
const struct pod *peers_own_pod(const struct store *of_pods, const struct workergroup *wg, uint32_t rank,
                                struct arena *a);
