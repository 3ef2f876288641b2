// SPDX-License-Identifier: Apache-2.0
// What a strategy asks of the domains of a gang. All that the planner knows of them: a further one is a row of the
// table, and its name in operator/api/workergroup.h.
#pragma once

#include "operator/api/workergroup.h"

struct strategy_traits {
    bool together; // all bundles in one domain, or wait
    bool distinct; // no two bundles in one domain, or wait
    bool even;     // over as many domains as there are; else over as few as will do
};

const struct strategy_traits *strategy_traits(enum strategy s);
