// SPDX-License-Identifier: Apache-2.0
// Places a gang without enough free room, as if some pods were gone: pods of the lowest possible priorities, and as few
// as possible.
#pragma once

#include "operator/placement/search.h"

// Call this after a failed try. VICTIMS_LOWER requires that the gang may preempt. If it returns false, all pods count
// again.
bool preempt_place(struct search *s, const struct cluster *c, enum victims_who who);

// The cost of the placement, as far as it can be foretold.
struct victims_cost preempt_cost(const struct search *s);
