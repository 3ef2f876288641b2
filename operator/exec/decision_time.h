// SPDX-License-Identifier: Apache-2.0
// The time that decisions use. If somebody sets the clock of this machine, the times in memory move with it. Otherwise
// a wait could end early, or last for hours.
#pragma once

#include "common/base/clock.h"
#include "operator/agents/agents.h"
#include "operator/placement/cluster.h"

struct decision_time { // all borrowed; agents may be NULL
    const struct clock *clock;
    struct cluster *cluster;
    struct agents *agents;
    struct clock_watch watch;
    int64_t leading_ms;   // since when this replica decides; 0 = it does not decide
    int64_t listening_ms; // since when agents can connect to it; 0 = they cannot
};

// Notes the time if the node falls silent. `old` is the node before a change, and `now` is the node after it. NULL = it
// does not exist.
void decision_time_saw(struct decision_time *t, const struct object *old, const struct object *now);
int64_t decision_time_now(struct decision_time *t); // Unix time; call it before each decision
