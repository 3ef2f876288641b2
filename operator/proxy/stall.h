// SPDX-License-Identifier: Apache-2.0
// A call that cannot be sent yet, and of whose arguments a part has come: its group is not ready, an earlier call of
// its caller waits, or no slot is free. What there is waits, and the sender is told to hold the rest, so that its
// length does not matter.
#ifndef CADRE_PROXY_STALL_H
#define CADRE_PROXY_STALL_H

#include "operator/proxy/call.h"

// The first piece has come, which is copied. Afterwards call->body is it; NULL: there is no room, and nothing was done.
struct blob *stall_begin(struct call *c, const struct call_body *first);
// A further one, from a sender that has not heard of it yet, or was told to go on. May fail the call.
void stall_add(struct call *c, const struct call_body *piece, bool last);
// Whether the sender is to hold the rest.
void stall_hold(struct call *c, bool hold);

#endif
