// SPDX-License-Identifier: Apache-2.0
// What ranks send of their results, until it is the answer of the call: the result of one rank as it is, or those of
// several collected into a list (collect.h), or joined (join.h). Results come whole or in pieces; a piece passes on as
// it comes where it can, and its sender is told to pause while too much of it waits.
#pragma once

#include "operator/proxy/call.h"

// Each may answer the call.
void result_whole(struct call_slot *slot, const struct call_body *body);
// A piece of one, `first` or not. False: this first one is to be collected, nothing has happened.
bool result_piece(struct call_slot *slot, const struct call_body *piece, bool first, bool last);
void result_error(struct call_slot *slot, const struct call_body *body);
// More than can be collected; what is left of it comes in pieces. `last`: nothing is.
void result_too_long(struct call_slot *slot, bool last);

// Something was sent, or has come: what is joined goes on, and bodies are paused or let go on. May answer the call.
void call_flow(struct call *c);
