// SPDX-License-Identifier: Apache-2.0
// Sends a call to its ranks: at once, when its group is ready, or when a slot is free. It sends the call as a whole, or
// piece by piece while it arrives.
#pragma once

#include "operator/proxy/call_start.h"

// Sends the call, lets it wait, or fails it.
void call_submit(struct call *c, const struct call_body *body);
// Sends calls of this group that waited for it or for a slot and need not wait any longer: at most *work of them, which
// it subtracts. False: more may be ready.
bool calls_release(struct group *g, unsigned *work);
// Takes ownership of `plan` and `split`.
void call_stream(struct call *c, const struct call_body *first, struct call_start *start);
