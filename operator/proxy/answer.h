// SPDX-License-Identifier: Apache-2.0
// The answer of a call, as its client gets it. Nothing here ends the call: the code that sends the last part does
// (call_end.h).
#pragma once

#include "common/wire/scatter.h"
#include "operator/proxy/call.h"

// Results that are a part of it, in their order, and the slot of each.
uint32_t answer_count(const struct call *c);
const struct call_slot *answer_slot(const struct call *c, uint32_t i);

// All of it: the result of the group in parts, or a short one. ERR_LIMIT: it is longer than may wait for the client.
int answer_send(struct call *c, const struct record_part *parts, size_t n, struct err *err);
// The same as a document with those sources; `own`: its own bytes.
int answer_send_scatter(struct call *c, const struct scatter *doc, struct blob *own, const struct record_part *sources,
                        struct err *err);
void answer_send_copy(struct call *c, const struct record_header *h, const char *body, size_t len);
int answer_send_single(struct call *c, uint32_t rank, const struct call_body *body, struct err *err);
void answer_send_null(struct call *c); // the calls that want no result
// The next piece of one rank's result. ERR_LIMIT, and errors of the client's queue.
int answer_pass(struct call *c, uint32_t rank, const struct call_body *piece, bool first, struct err *err);
void answer_streamed(struct call *c); // all of it has been queued as it came

// A whole result waits in its slot for those of other ranks. ERR_LIMIT.
int answer_keep(struct call_slot *slot, const struct call_body *body, struct err *err);
int answer_no_room(const struct call *c, struct err *err); // ERR_LIMIT: results together are more than may wait

// A rank is told to pause its result, or to go on. What finds no room is to be said again later: without its GO a
// sender would hold what it has for ever.
void answer_pause(struct call_slot *slot, bool pause);
// It will not be finished: its client gets no more of it, and ranks that were paused are let go. Whether one could
// not be told now.
bool answer_abort(struct call *c);
void answer_done(struct call *c);
