// SPDX-License-Identifier: Apache-2.0
// Sends a call to its ranks: at once, when its group is ready, or when a slot is free. It sends the call as a whole, or
// piece by piece while it arrives.
#pragma once

#include "operator/proxy/call.h"

// Sends the call, lets it wait, or fails it.
void call_submit(struct call *c, const struct call_body *body);
// Sends calls of this group that waited for it or for a slot and need not wait any longer: at most *work of them, which
// it subtracts. False: more may be ready.
bool calls_release(struct group *g, unsigned *work);
// The decision about a call. It is made from the first piece of the body, before the call exists.
struct call_start {
    int verdict;  // enum verdict. Negative: the call fails with `err`
    bool prepare; // the head of its batch is long, so the call waits until the head is ready (delivery.h)
    struct dispatch_plan *plan;
    struct split_stream *split;
    struct err err;
};
// False: nothing is decided. *want bytes of the body must arrive first; 0 = all.
bool call_decide(struct session *s, const struct group *g, struct request *q, const struct call_body *first,
                 struct call_start *ret, size_t *want);
// Takes ownership of `plan` and `split`.
void call_stream(struct call *c, const struct call_body *first, struct call_start *start);
void call_start_forget(struct call_start *start);
