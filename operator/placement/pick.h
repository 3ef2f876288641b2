// SPDX-License-Identifier: Apache-2.0
// Distributes identical bundles over choices: nodes of a domain, or domains of a cluster. Numbers only. Among equally
// good choices it takes the first, so that the result depends only on the input.
#pragma once

#include "common/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choice {
    int64_t room; // bundles that it can take
    int64_t have; // bundles of the same gang that it has already
    bool spare;   // better left alone: taken after the others
    bool whole;   // nothing on it is in use yet
    int64_t take; // the answer; 0 at first
};

// The one choice that n bundles go into best: it is filled exactly, or is in use already, or leaves the least. NULL if
// none has the room.
struct choice *pick_tightest(struct choice *c, size_t n_choices, int64_t n);

// All n bundles into as few choices as possible, where those that have some already come first and cost nothing; of
// such answers one with a tight fit. There must be room for n in total.
void pick_fewest(struct choice *c, size_t n_choices, int64_t n, struct arena *a);

// All n bundles over as many choices as possible, evenly, counting what they have. There must be room for n in total.
void pick_evenly(struct choice *c, size_t n_choices, int64_t n, struct arena *a);
