// SPDX-License-Identifier: Apache-2.0
// Whether others can reach this replica. If they can, the silence of one agent says something about that agent. If all
// are silent, the operator is at fault, and no pod is replaced. Pure.
#pragma once

#include "operator/agents/facts.h"

// As it was found when a decision began. Times are Unix times.
struct reach {
    int64_t listening_ms; // since when this replica can be dialed with the keys that it has now; 0 = it cannot
    size_t expected;      // agents of the cluster whose pods run
    const struct agent_witness *agents, *replicas; // those that are connected longest
    size_t n_agents, n_replicas;
};

enum reach_verdict {
    REACH_COUNTS,  // the silence is the agent's
    REACH_NOT_YET, // it has not lasted long enough, or what bears witness has not
    REACH_NOBODY,  // nobody bears witness that this replica can be reached
};

// May a silence since then count as loss? So it may when it has lasted for limit_ms, this replica could be dialed for
// that long, and for 15 s, and somebody else was connected all that time and has been heard of after it: an agent, or
// another replica where the cluster has no agents but those `silent` ones that ask. *ret_ms: when to look again, from
// now; not set with REACH_COUNTS.
enum reach_verdict reach_verdict(const struct reach *r, size_t silent, int64_t since_ms, int64_t limit_ms,
                                 int64_t now_ms, int64_t *ret_ms);
