// SPDX-License-Identifier: Apache-2.0
// What the API server has answered, of all clients: unlike time it does not depend on what else the machine does.
#ifndef CADRE_BENCH_GROUPS_REQUESTS_H
#define CADRE_BENCH_GROUPS_REQUESTS_H

#include "bench/groups/world.h"

// Reads and writes of single objects so far, but for leases and nodes, which go on when nothing is asked.
double requests_total(struct world *w);

#endif
