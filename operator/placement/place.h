// SPDX-License-Identifier: Apache-2.0
// Places a whole gang in the present state of a search. The state says which nodes count, whether they count as empty,
// and which domains are in use.
#pragma once

#include "operator/placement/search.h"

// Returns true with a node for each bundle in s->answer, or false with the shape that did not fit in s->failed.
bool place_all(struct search *s);

// Sets of marks for s->exclude, in the order in which to try them. They exclude the nodes that should stay free as long
// as the gang fits elsewhere. The spreading strategies take nodes with GPUs last instead: a preference must not cost
// them domains. The last set excludes only nodes that are held for others.
enum { EXCLUSIONS_MAX = 4 };
size_t place_exclusions(const struct search *s, unsigned *ret);

// Calls place_all() with each of these sets in turn, until one try succeeds.
bool place_preferably(struct search *s);
