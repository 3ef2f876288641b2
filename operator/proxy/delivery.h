// SPDX-License-Identifier: Apache-2.0
// Prepares what the ranks of a call get: its arguments, whole or split. References in them get the address and the key
// to fetch the object. Short arguments are prepared at once. Long ones are a job (job.h): meanwhile the call stays
// CALL_WAITING, in front of later calls of its client to the same group, or CALL_QUEUED, in front of later tasks.
#pragma once

#include "operator/proxy/call.h"
#include "operator/proxy/split.h"

struct delivery {
    struct blob *made; // the body with the references looked up; NULL = the call's own body
    bool refs;         // the arguments contain references
    bool whole;        // all ranks get the same; else `split`
    struct split split;
};

// Returns true if there is nothing to prepare: each rank gets the body as it is.
bool delivery_is_plain(const struct call *c, const struct record_call *parts);
// Call this before the call is sent, when it has its plan. Returns what was prepared, or prepares it now. The errors of
// split_make(). Call delivery_done() in any case.
int delivery_make(struct call *c, const struct call_body *body, const struct record_call *parts, struct delivery *ret,
                  struct err *err);
void delivery_done(struct delivery *d);

// Returns true if it takes long to prepare the arguments, and they are not prepared.
bool delivery_is_long(const struct call *c, const struct call_body *body);
// Starts the job. The call waits (CALL_WAITING or CALL_QUEUED), with all of its arguments. The proxy looks at it again
// once they are ready. `head`: prepares only the head of a batch that passes. The head must have arrived; the rest of
// the batch may arrive meanwhile.
void delivery_prepare(struct call *c, bool head);
bool delivery_head_is_long(size_t head);
// Returns 1 if the head was prepared for that plan: then *ret splits the batch, or is NULL if the batch must be here
// whole. Returns 0 if nothing was prepared. The errors of split_stream_make().
int delivery_take_head(struct call *c, struct dispatch_plan *d, struct split_stream **ret, struct err *err);
bool delivery_awaited(const struct call *c); // the job is not done
void delivery_forget(struct call *c);        // the call is over
