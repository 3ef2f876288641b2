// SPDX-License-Identifier: Apache-2.0
// Bodies that pass through as they come: the arguments of a call on their way to its ranks, where each piece is held
// once for all of them, and the result of a single rank on its way to the caller. Whoever sends one is told to HOLD it
// while more than the high mark of it waits for the slowest of those who read it, and to GO on below the low mark; so a
// slow reader stalls that call alone.
#ifndef CADRE_PROXY_STREAM_H
#define CADRE_PROXY_STREAM_H

#include "operator/proxy/call.h"

// A further piece of the arguments of a call that is CALL_STREAMING. False: the call has failed.
bool stream_args(struct call *c, const struct call_body *piece, bool last);
// Something more for a rank; nothing happens where it does not have the call any more. ERR_THROTTLED.
int stream_add(struct call *c, uint32_t slot, const struct record_part *part, struct err *err);
// Before the call is over: what is unfinished ends, and whoever was told to hold something is let go.
void stream_abort(struct call *c);

// A piece of the RESULT of a rank, `first` or not. False: this first one is to be collected, nothing has happened.
bool stream_result(struct call_slot *slot, const struct call_body *piece, bool first, bool last);

void stream_flow(struct call *c); // something was sent, or has come: hold, or go on

#endif
