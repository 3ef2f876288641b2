// SPDX-License-Identifier: Apache-2.0
// A call that cannot be sent yet, and of whose arguments a part has come: its group is not ready, an earlier call of
// its caller waits, or no slot is free. What there is waits, and the sender is told to hold the rest, so that its
// length does not matter. What lies in shared memory comes at once, however long it is: it waits where it lies.
#ifndef CADRE_PROXY_STALL_H
#define CADRE_PROXY_STALL_H

#include "operator/proxy/call.h"

struct stall_rest;

// The first piece has come, which is copied. Afterwards call->body is it; NULL: there is no room, and nothing was done.
struct blob *stall_begin(struct call *c, const struct call_body *first);
// A further one, from a sender that has not heard of it yet, or was told to go on. May fail the call.
void stall_add(struct call *c, const struct call_body *piece, bool last);
// Whether the sender is to hold the rest.
void stall_hold(struct call *c, bool hold);
// Nothing more will come of it.
bool stall_complete(const struct call *c);

// As many bytes of the rest as call->want asks for come behind call->body, as far as they are there; they are copied,
// for they are going to be read. ERR_LIMIT.
int stall_fetch(struct call *c, struct err *err);
// The first piece of the rest, to be looked at where it lies, and whether it is all of it; NULL: nothing is there.
const char *stall_peek(const struct call *c, size_t *ret_len, bool *ret_last);
// The call is CALL_STREAMING now, and call->body was sent: the rest follows it. May fail the call.
void stall_pass(struct call *c);
void stall_free(struct call *c);

#endif
