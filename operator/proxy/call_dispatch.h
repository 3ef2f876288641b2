// SPDX-License-Identifier: Apache-2.0
// Sends a call to its ranks: at once, when its group is ready, or when a slot is free; as a whole, or while it arrives.
#pragma once

#include "operator/proxy/call.h"

// Sends it, lets it wait or fails it.
void call_submit(struct call *c, const struct call_body *body);
// Sends calls of this group that waited for it or for a slot, when they need not wait any longer: at most *work of
// them, which it subtracts. False: more may be ready.
bool calls_release(struct group *g, unsigned *work);
// What is decided of a call before it is made, by the first piece of its body.
struct call_start {
    int verdict;  // enum verdict; negative: it fails, with `err`
    bool prepare; // the head of its batch is long: it waits until that is ready (delivery.h)
    struct dispatch_plan *plan;
    struct split_stream *split;
    struct err err;
};
// False: more of the body has to be there first, *want bytes or all (0); nothing is decided.
bool call_decide(struct session *s, const struct group *g, struct request *q, const struct call_body *first,
                 struct call_start *ret, size_t *want);
void call_stream(struct call *c, const struct call_body *first, struct call_start *start); // takes what it holds
void call_start_forget(struct call_start *start);
