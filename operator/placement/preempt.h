// SPDX-License-Identifier: Apache-2.0
// Places a gang without enough free room, as if some pods were gone: pods of the lowest possible priorities, and as few
// as possible.
#pragma once

#include "operator/placement/search.h"

// After a try that failed. With LEAVE_LOWER only if the gang may preempt. False: nothing is opened any more.
bool preempt_place(struct search *s, const struct cluster *c, enum leave who);

// What the placement costs, as far as can be foretold.
struct toll preempt_toll(const struct search *s);
