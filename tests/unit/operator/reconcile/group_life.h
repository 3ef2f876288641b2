// SPDX-License-Identifier: Apache-2.0
// The life of one WorkerGroup in a simulated world.
#pragma once

#include "tests/unit/operator/reconcile/gang_life.h"

struct life *life_wild(uint64_t seed);               // of a random group, in which everything goes wrong that can
struct life *life_calm(const struct sim_spec *spec); // of a group of 8 in which nothing goes wrong by itself

const struct workergroup *life_group(const struct life *l);
