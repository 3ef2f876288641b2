// SPDX-License-Identifier: Apache-2.0
// Lets calls wait until their group is ready, until a slot is free, or until their arguments are prepared. It sends
// each call (call_send.h) as soon as it need not wait.
#pragma once

#include "operator/proxy/call_start.h"

// Sends the call, lets it wait, or fails it.
void call_submit(struct call *c, const struct call_body *body);
// The same for the first piece of a call. Takes ownership of the `plan` and the `split` of `start`.
void call_stream(struct call *c, const struct call_body *first, struct call_start *start);
// Sends calls of this group that waited for it or for a slot and need not wait any longer: at most *work of them, which
// it subtracts. False: more may be ready.
bool calls_release(struct group *g, unsigned *work);
