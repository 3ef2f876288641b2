// SPDX-License-Identifier: Apache-2.0
// One answer out of the results of several ranks: a list, or the batches that they are, joined.
#pragma once

#include "operator/proxy/call.h"

// All ranks have answered, and the results that are wanted lie in the slots: sends the answer. COLLECT_LATER: joining
// them takes long (job.h); to be called again in each turn of the loop. ERR_INVALID, ERR_LIMIT.
enum { COLLECT_LATER = 1 };
int collect(struct call *c, struct err *err);
void collect_forget(struct call *c); // the call is over
// The only rank has: sends a list of this result, where it is short JSON. False: it is to be kept, and then collected.
bool collect_only(struct call *c, const struct call_body *body);
