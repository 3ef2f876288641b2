// SPDX-License-Identifier: Apache-2.0
// Bodies that pass through as they come: the arguments of a call on their way to its ranks (args.h), and its results on
// their way to the client. Their sender is told to HOLD while more than the high mark of a body waits for its slowest
// reader, and to GO on below the low mark; so a slow reader stalls that call alone.
#ifndef CADRE_PROXY_STREAM_H
#define CADRE_PROXY_STREAM_H

#include "operator/proxy/call.h"

// Before the call is over: what is unfinished ends, and whoever was told to hold something is let go.
void stream_abort(struct call *c);

// A piece of the RESULT of a rank, `first` or not. False: this first one is to be collected, nothing has happened.
bool stream_result(struct call_slot *slot, const struct call_body *piece, bool first, bool last);

// Whether a body that is held (or not) is to go on (or to be held), with so many bytes of it waiting.
bool stream_turns(const struct call *c, bool held, size_t waits);
void stream_flow(struct call *c); // something was sent, or has come: hold, or go on

#endif
