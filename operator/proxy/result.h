// SPDX-License-Identifier: Apache-2.0
// Takes results of ranks, until they are the answer of the call: the result of one rank unchanged, or the results of
// several ranks as a list (collect.h), or joined (join.h). Results arrive whole or in parts. A part is passed on at
// once if possible. Its sender is told to pause while too much waits.
#pragma once

#include "operator/proxy/call.h"

// Each of these may answer the call.
void result_whole(struct call_rank *rank, const struct call_body *body);
// Takes a piece of a result. False: nothing has happened. This is a first piece, and the caller must collect the
// result.
bool result_piece(struct call_rank *rank, const struct call_body *piece, bool first, bool last);
void result_error(struct call_rank *rank, const struct call_body *body);
// The result is too long to be collected. The rest of it arrives in pieces. `last`: there is no rest.
void result_too_long(struct call_rank *rank, bool last);

// Call this after something was sent or has arrived. Continues to join, and tells the senders of bodies to pause or to
// go on. May answer the call.
void result_flow(struct call *c);
