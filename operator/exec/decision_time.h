// SPDX-License-Identifier: Apache-2.0
// The time of decisions. If somebody sets the clock of this machine, the times in memory move with it, so that no wait
// ends early or lasts for hours.
#pragma once

#include "common/base/clock.h"
#include "operator/agents/agents.h"
#include "operator/placement/cluster.h"

struct decision_time { // all borrowed; agents NULL = there are none
    const struct clock *clock;
    struct cluster *cluster;
    struct agents *agents;
    struct clock_watch watch;
    int64_t leading_ms;   // since when this replica decides; 0 = it does not
    int64_t listening_ms; // since when it can be dialed; 0 = it cannot
};

// A node as it was and is; NULL = not there. That it falls silent is noted.
void decision_time_saw(struct decision_time *t, const struct object *old, const struct object *now);
int64_t decision_time_now(struct decision_time *t); // Unix time; before each decision
