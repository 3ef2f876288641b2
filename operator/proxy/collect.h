// SPDX-License-Identifier: Apache-2.0
// One answer out of the results of several ranks: a list. Batches are joined instead (join.h).
#pragma once

#include "operator/proxy/call.h"

// All ranks have answered, and the results that are wanted lie in the slots: sends a list of them, or null where they
// were to be joined and collect_is_nothing(). ERR_LIMIT.
int collect(struct call *c, struct err *err);
bool collect_is_nothing(const struct call *c); // no rank has returned anything
// The only rank has: sends a list of this result, where it is short JSON. False: it is to be kept, and then collected.
bool collect_only(struct call *c, const struct call_body *body);
