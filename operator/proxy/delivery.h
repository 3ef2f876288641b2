// SPDX-License-Identifier: Apache-2.0
// What the ranks of a call get: its arguments, whole or split, where references have what it takes to fetch them. Short
// arguments are made ready at once. Long ones are a job (job.h): the call stays CALL_WAITING meanwhile, in front of
// the later calls of its client to the same group.
#pragma once

#include "operator/proxy/call.h"
#include "operator/proxy/split.h"

struct delivery {
    struct blob *made; // the body with references looked up; NULL = the call's own
    bool refs;         // there are some
    bool whole;        // all ranks get the same, else `split`
    struct split split;
};

// There is nothing to be made ready: each rank gets the body as it is.
bool delivery_is_plain(const struct call *c, const struct record_call *parts);
// Of a call that is about to be sent, with its plan: what was prepared, or it is made now. The errors of split_make().
// delivery_done() in any case.
int delivery_make(struct call *c, const struct call_body *body, const struct record_call *parts, struct delivery *ret,
                  struct err *err);
void delivery_done(struct delivery *d);

// What is to be made ready takes long, and is not.
bool delivery_is_long(const struct call *c, const struct call_body *body);
// The call waits (CALL_WAITING or CALL_QUEUED), with all of its arguments; it is looked at again once they are ready.
// `head`: only the head of a batch that passes, which is there whole. The rest of it may come meanwhile.
void delivery_prepare(struct call *c, bool head);
bool delivery_head_is_long(size_t head);
// 1: *ret is what was prepared, for that plan; NULL: the batch has to be here whole. 0: nothing was. Errors as of
// split_stream_make().
int delivery_take_head(struct call *c, struct dispatch_plan *d, struct split_stream **ret, struct err *err);
bool delivery_awaited(const struct call *c); // they are being made ready
void delivery_forget(struct call *c);        // the call is over
