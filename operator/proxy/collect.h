// SPDX-License-Identifier: Apache-2.0
// Makes one answer from the results of several ranks: a list. Batches are joined instead (join.h).
#pragma once

#include "operator/proxy/call.h"

// All ranks have answered, and the wanted results wait. Sends a list of them. Sends null if they were to be
// joined and collect_is_nothing(). ERR_LIMIT.
int collect(struct call *c, struct err *err);
bool collect_is_nothing(const struct call *c); // all results are empty or null
// The call had one rank, which has answered. Sends a list of its result if that is short JSON. False: nothing was sent;
// keep the result, then collect.
bool collect_only(struct call *c, const struct call_body *body);
