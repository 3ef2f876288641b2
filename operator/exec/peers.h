// SPDX-License-Identifier: Apache-2.0
// What the agents of a group's pods and the router of its calls report, as decisions need it.
#pragma once

#include "operator/agents/agents.h"
#include "operator/agents/replica_reports.h"
#include "operator/proxy/router.h"
#include "operator/reconcile/group_reconcile.h"
#include "operator/runtime/store.h"

struct peers { // all borrowed; NULL = there is none: nobody is there
    const struct agents *agents;
    const struct router *router;
    const struct replica_reports *reports;
};

// Of a cluster in which the agents of so many pods run.
struct reach peers_reach(const struct peers *p, size_t expected, int64_t listening_ms, struct arena *a);
// `agents` and `members` of a view.
const struct agent_facts *peers_agents(const struct peers *p, const struct workergroup *wg,
                                       const struct pod *const *pods, size_t n, struct arena *a);
const int32_t *peers_members(const struct peers *p, const struct group_view *v, struct arena *a);
// The pod of a rank, of a group with pods of its own: the newest incarnation. NULL = nobody knows.
const struct pod *peers_own_pod(const struct store *of_pods, const struct workergroup *wg, uint32_t rank,
                                struct arena *a);
