// SPDX-License-Identifier: Apache-2.0
// What a strategy requires of the domains of a gang. The planner knows nothing else about strategies. To add one, add a
// row to the table, and its name to operator/api/workergroup.h.
#pragma once

#include "operator/api/workergroup.h"

struct strategy_traits {
    bool together; // all bundles in one domain, or wait
    bool distinct; // no two bundles in one domain, or wait
    bool even;     // over as many domains as there are; else over as few as will do
};

const struct strategy_traits *strategy_traits(enum strategy s);
