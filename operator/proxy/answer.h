// SPDX-License-Identifier: Apache-2.0
// The answer of a call, as its client gets it, and the results that wait to become it. Other files use only these
// functions. They do not need to know whether the answer is the result of one rank, a list, or joined. Nothing here
// ends the call: the file that sends the last part does (call_end.h).
#pragma once

#include "common/wire/scatter.h"
#include "operator/proxy/call.h"

// Results that wait

// Keeps a whole result with its rank, where it waits for the results of other ranks. ERR_LIMIT.
int answer_keep(struct call_rank *rank, const struct call_body *body, struct err *err);
// The result of this rank that waits; its len is 0 if none does.
struct record_part answer_result(const struct call_rank *rank);
const char *answer_bytes(const struct record_part *result);
// How many results are part of the answer, and the rank of each, in the order of the answer.
uint32_t answer_count(const struct call *c);
const struct call_rank *answer_rank(const struct call *c, uint32_t i);
// Notes that this many bytes of results wait for slow ranks. They count as parked for the session. The proxy still
// reads the client.
void answer_parks(struct call *c, size_t bytes);
int answer_no_room(const struct call *c, struct err *err); // ERR_LIMIT: all results together are too long to wait

// A whole answer

// Sends the result of the group, in parts. ERR_LIMIT: it is longer than what may wait for the client.
int answer_send(struct call *c, const struct record_part *parts, size_t n, struct err *err);
// Sends a document that was made of these sources. `own` contains the document's own bytes. ERR_LIMIT.
int answer_send_scatter(struct call *c, const struct scatter *doc, struct blob *own, const struct record_part *sources,
                        struct err *err);
void answer_send_copy(struct call *c, uint32_t rank, const char *body, size_t len);
// Sends the result of the only rank. ERR_LIMIT.
int answer_send_single(struct call *c, uint32_t rank, const struct call_body *body, struct err *err);

// An answer in pieces

// Sends the next piece of one rank's result. ERR_LIMIT, and errors of the client's queue.
int answer_pass(struct call *c, uint32_t rank, const struct call_body *piece, bool first, struct err *err);
// Sends the next part of an answer. Nothing happens if the client has gone. Errors of the client's queue.
int answer_part(struct call *c, uint32_t rank, const struct record_part *part, bool first, struct err *err);
size_t answer_waits(const struct call *c); // bytes of the answer that wait for the client
void answer_streamed(struct call *c);      // all of it has been queued
// Tells a rank whose result comes in pieces to pause or to go on, when `waits` bytes of the result wait. Returns true
// if the rank pauses.
bool answer_flow(struct call_rank *rank, size_t waits);

// Ends the answer: the client gets no more of it, and ranks that pause are told to go on. Returns true if the queue of
// such a rank had no room. Try again later then, because a rank without its GO keeps its result for ever.
bool answer_abort(struct call *c);
void answer_done(struct call *c);
