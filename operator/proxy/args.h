// SPDX-License-Identifier: Apache-2.0
// The arguments of a call on their way from its client to its ranks. Other files use only these functions. The
// arguments are in one of three forms:
//
//   whole     all of them arrived before the call could be sent, and wait
//   parked    a part of them arrived and waits. The client is told to pause, so their length does not matter. Arguments
//             in shared memory arrive at once, however long they are, and wait where they are. If the head of a batch
//             is long, a job prepares it meanwhile (delivery.h)
//   passing   the call is CALL_STREAMING: each piece goes on to all ranks as it arrives, or is split for them
//             (split_stream.h). The client is told to pause while too much of it waits for the slowest rank
//
// The types of a body, in the order of its way to the ranks:
//
//   struct record        what the reader hands over: a body or a piece of one, with its header (record_reader.h)
//   struct record_call   where the head and the arguments are in a body (record.h)
//   struct call_body     the same bytes without the header, in the reader's input or in a blob (body.h)
//   struct blob          keeps bytes for all who refer to it, and charges them to a quota (blob.h)
//   struct record_part   a range of a blob, as queues take it (parts.h)
//   struct args          the arguments that a call has now; `args_rest` is what follows the first part of parked ones
//   struct preparation   the job that prepares long arguments while the call waits (delivery.c)
//   struct delivery      what the ranks of a whole call get: one body, or a `split` with a piece for each (delivery.h)
//   struct split_stream  makes these pieces of a batch that passes (split_stream.h)
//   struct record_stream the call in the queue of one rank (record_stream.h)
#pragma once

#include "operator/proxy/call.h"

// Keeps all arguments until the call can be sent. False: there is no room.
bool args_keep(struct call *c, const struct call_body *body);
// Keeps the first piece: a copy, or a reference to a blob that contains nothing else. The client is told to pause.
// False: there is no room, and nothing has changed.
bool args_park(struct call *c, const struct call_body *first);
void args_wait(struct call *c);         // counts them as bytes that wait for a group or a slot
bool args_parked(const struct call *c); // only a part of the arguments is in args_body()
// Returns true if the call waits for its client to send more: the client has not sent all, and was not told to pause.
bool args_missing(const struct call *c);
// Takes a further piece. It goes on to the ranks, or waits with parked arguments. Nothing happens if the call has all
// of its arguments already. ERR_LIMIT, ERR_THROTTLED, ERR_INVALID.
int args_piece(struct call *c, const struct call_body *piece, bool last, struct err *err);

// For parked arguments: tells the client to pause, or to go on. Nothing happens if the call has all of its arguments.
void args_pause(struct call *c, bool pause);
// For parked arguments: the call can be sent once args_body() has this many bytes. SIZE_MAX: once all have arrived.
void args_want(struct call *c, size_t bytes);
// For parked arguments: appends what follows args_body() to it, up to the wanted bytes (args_want()). Returns 1 if they
// are there, or if all arguments are. Returns 0 if not: then the proxy looks at the group again in the next turn, or
// the client sends more. ERR_LIMIT.
int args_fetch(struct call *c, struct err *err);
// The arguments that wait. `next` is what follows them, as far as it has arrived.
struct call_body args_body(const struct call *c);
// The same, for sending. The caller gets the reference to the blob. If the arguments are parked, the rest still waits.
struct call_body args_take(struct call *c);

// From now on, `s` splits the pieces of a batch. The call owns it. NULL: each rank gets every piece.
void args_split_by(struct call *c, struct split_stream *s);
const struct split_stream *args_split(const struct call *c);
// The call is CALL_STREAMING, and args_take() was sent: sends the rest of parked arguments. The errors of args_piece().
int args_pass_parked(struct call *c, struct err *err);
// Call this after something was sent. Tells the client to pause or to go on. Returns true if the client pauses.
bool args_flow(struct call *c);

// Call this before the call is answered. Tells ranks that have a part of the arguments that no more comes, and lets a
// paused client go on.
void args_abort(struct call *c);
void args_done(struct call *c);
