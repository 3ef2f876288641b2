// SPDX-License-Identifier: Apache-2.0
// The arguments of a call on their way from its client to its ranks. They are in one of these forms:
//
//   whole     all of them came before the call could be sent: they wait in `body`
//   parked    a part of them did: it waits, and the client is told to pause, so that their length does not
//             matter. What lies in shared memory comes at once, however long it is: it waits where it lies. The head of
//             a batch may be long; then it is made ready meanwhile (delivery.h)
//   passing   the call is CALL_STREAMING: each piece goes on to all ranks as it comes, or is split for them
//             (split_stream.h), and the client is told to pause while too much of it waits for the slowest of them
#pragma once

#include "operator/proxy/call.h"

// The call waits with all of them. False: there is no room.
bool args_keep(struct call *c, const struct call_body *body);
void args_wait(struct call *c); // they count as waiting for its group or a slot
// It waits with the first piece, which is copied, or a blob of its own. False: there is no room, and nothing was done.
bool args_park(struct call *c, const struct call_body *first);
// A further piece of parked ones, from a client that has not heard of it yet, or was told to go on. ERR_LIMIT.
int args_add(struct call *c, const struct call_body *piece, bool last, struct err *err);
// Whether the client is to pause, with parked ones.
void args_pause(struct call *c, bool pause);
// Parked, and nothing more will come.
bool args_complete(const struct call *c);
// As many bytes of the rest as `want` asks for come behind `body`, as far as they are there; they are copied, for they
// are going to be read. 1: there are more, for another turn of the loop. ERR_LIMIT.
int args_fetch(struct call *c, struct err *err);
// The first piece of the rest, to be looked at where it lies, and whether it is all of it; NULL: nothing is there.
const char *args_peek(const struct call *c, size_t *ret_len, bool *ret_last);
// What waits.
struct call_body args_body(const struct call *c);
// Takes it, to send it and unref its blob; it waits no longer.
struct call_body args_take(struct call *c);

// The call is CALL_STREAMING, and `body` was sent: the rest follows it. ERR_LIMIT, ERR_THROTTLED, ERR_INVALID.
int args_pass_parked(struct call *c, struct err *err);
// A further piece. The same errors.
int args_pass(struct call *c, const struct call_body *piece, bool last, struct err *err);
void args_flow(struct call *c); // something was sent: pause, or go on

// Before the call is over: ranks that have a part of them are told that no more comes, and a paused client is let go.
void args_abort(struct call *c);
void args_done(struct call *c);
