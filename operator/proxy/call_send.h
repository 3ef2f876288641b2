// SPDX-License-Identifier: Apache-2.0
// Sends a call to its ranks, as a whole, or piece by piece while it arrives. The caller knows from request_resolve()
// that the call need not wait. If it still cannot be sent, it fails.
#pragma once

#include "operator/proxy/call.h"

// Sends all of the call.
void call_send(struct call *c, const struct call_body *body);
// Sends the first piece of the call, whose rest follows. False: the call has failed.
bool call_send_first(struct call *c, const struct call_body *first);
// Sends what has arrived of a call that waited (args_keep(), args_park()).
void call_send_kept(struct call *c);
