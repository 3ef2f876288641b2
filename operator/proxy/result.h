// SPDX-License-Identifier: Apache-2.0
// Results of ranks, until they are the answer of the call: the result of one rank unchanged, or the results of several
// ranks as a list (collect.h), or joined (join.h). Results arrive whole or in parts. A part is passed on at once if
// possible. Its sender is told to pause while too much waits.
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
