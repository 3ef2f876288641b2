// SPDX-License-Identifier: Apache-2.0
// Distributes identical bundles over choices: nodes of a domain, or domains of a cluster. Numbers only. Among equally
// good choices it takes the first, so that the result depends only on the input.
#pragma once

#include "common/base/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct choice {
    int64_t room; // how many bundles it can take
    int64_t have; // how many bundles of the same gang it has already
    bool avoid;   // taken only after all others
    bool whole;   // nothing on it is in use yet
    int64_t take; // the answer; 0 at first
};

// The one choice that is best for n bundles: they fill it exactly, or it is in use already, or it has the least room
// left. NULL if no choice has enough room.
struct choice *pick_tightest(struct choice *c, size_t n_choices, int64_t n);

// Puts all n bundles into as few choices as possible. Choices that have some already come first and cost nothing. Among
// such answers it takes one with a tight fit. There must be room for n in total.
void pick_fewest(struct choice *c, size_t n_choices, int64_t n, struct arena *a);

// Puts all n bundles over as many choices as possible, evenly, counting the bundles that they have already. There must
// be room for n in total.
void pick_evenly(struct choice *c, size_t n_choices, int64_t n, struct arena *a);
