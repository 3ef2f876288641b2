// SPDX-License-Identifier: Apache-2.0
// Decides whether others can reach this replica. If they can, the silence of one agent says something about that agent.
// If all are silent, the operator is at fault, and no pod is replaced. Pure.
#pragma once

#include "operator/agents/facts.h"

// The evidence when a decision began. Times are Unix times.
struct reach {
    int64_t listening_ms; // since when agents can connect to this replica with its present keys; 0 = they cannot
    size_t expected;      // agents of the cluster whose pods run
    const struct connected_peer *agents, *replicas; // the ones that are connected longest
    size_t n_agents, n_replicas;
};

enum reach_verdict {
    REACH_COUNTS,  // the agent is at fault
    REACH_NOT_YET, // the silence, or a connection that could be evidence, has not lasted long enough
    REACH_NOBODY,  // no connection proves that others can reach this replica
};

// Returns REACH_COUNTS if a silence since since_ms may count as loss. That requires three things. The silence has
// lasted for limit_ms. For that time, and for at least 15 s, agents could connect to this replica. During all that time
// somebody else was connected, and was heard after it: an agent, or another replica if the cluster has no agents except
// the `silent` ones. Otherwise *ret_ms is the time until the next look.
enum reach_verdict reach_verdict(const struct reach *r, size_t silent, int64_t since_ms, int64_t limit_ms,
                                 int64_t now_ms, int64_t *ret_ms);
