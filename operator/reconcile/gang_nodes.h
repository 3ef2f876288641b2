// SPDX-License-Identifier: Apache-2.0
// The nodes for the gang of a decision.
#pragma once

#include "operator/reconcile/gang.h"

// Plans the missing pods beside those that exist. *ret_why says why they were not placed; NULL: they were. Returns
// false if nobody can say what the gang requests: Accepted then says why.
bool gang_nodes_find(struct gang_decision *g, struct placement *ret, const char **ret_why);
// Returns why no nodes that exist could ever take the present spec. NULL: they could, or it is not known. A gang in the
// line is asked again when nodes change.
const char *gang_nodes_hopeless(struct gang_decision *g);
