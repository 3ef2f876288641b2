// SPDX-License-Identifier: Apache-2.0
// Places a whole gang in the present state of a search: which nodes count, whether they count as empty, and which
// domains are in use.
#pragma once

#include "operator/placement/search.h"

// True: s->answer has a node for each bundle. False: s->failed is the shape that did not fit.
bool place_all(struct search *s);

// Sets of marks for s->exclude, to be tried in this order: keeps off the nodes that are better left alone as long as
// there is another way. The spreading strategies take nodes with GPUs last instead: a preference must not cost them
// domains. The last one excludes only what is held for others.
enum { CARES_MAX = 4 };
size_t place_cares(const struct search *s, unsigned *ret);

// place_all() with each of them in turn.
bool place_with_care(struct search *s);
