// SPDX-License-Identifier: Apache-2.0
// The answer of a call, from what its ranks send to what its client gets: the result of one rank as it is, or those of
// several collected into a list, or joined (join.h). Results come whole or in pieces; a piece passes on as it comes
// where it can, and its sender is told to pause while too much of it waits.
#ifndef CADRE_PROXY_ANSWER_H
#define CADRE_PROXY_ANSWER_H

#include "operator/proxy/body.h"
#include "operator/proxy/failure.h"

struct call;
struct call_slot;
struct join;

struct answer {                  // of a call, until its client has it
    struct record_stream stream; // of a single rank, or joined, on its way to the client
    struct join *join;           // of results that are joined as they come; NULL = none has come so
    struct blob *gathered;       // results that came in a reader's input, one behind the other
    size_t parked;               // bytes of results that wait for those of other ranks
};

// What a rank sends. Each may answer the call.
void answer_result(struct call_slot *slot, const struct call_body *body); // a whole result
// A piece of one, `first` or not. False: this first one is to be collected, nothing has happened.
bool answer_piece(struct call_slot *slot, const struct call_body *piece, bool first, bool last);
void answer_error(struct call_slot *slot, const struct call_body *body);
// More than can be collected; what is left of it comes in pieces. `last`: nothing is.
void answer_too_long(struct call_slot *slot, bool last);

// What the client gets. Each answers the call.
void answer_send(struct call *c, const struct record_part *parts, size_t n); // the result of the group
void answer_send_copy(struct call *c, const struct record_header *h, const char *body, size_t len);
void answer_streamed(struct call *c); // all of the result has been queued as it came

struct record_part answer_part(const struct call *c, const struct call_slot *slot); // a result that is kept in the slot
void answer_parks(struct call *c, size_t bytes); // so much waits now for other ranks: no reason not to read the client
// Ranks are told to pause results, or to go on. Whether one is paused.
bool answer_flow(struct call *c);
// It will not be finished: its client gets no more of it, and ranks that were paused are let go. Whether one could
// not be told now.
bool answer_abort(struct call *c);
void answer_done(struct call *c);

#endif
