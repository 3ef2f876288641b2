// SPDX-License-Identifier: Apache-2.0
// Decides from the beginning of a body whether its call can start: now, after more of the body has arrived, or after it
// has waited. The decision is made before the call exists, so a call is created only once. A call that waits with its
// first piece (args.h) is planned again when it can be sent.
#pragma once

#include "operator/proxy/call.h"

struct call_start {
    int verdict;  // enum request_verdict. Negative: the call fails with `err`
    bool prepare; // the head of its batch is long, so the call waits until the head is ready (delivery.h)
    struct dispatch_plan *plan;
    struct split_stream *split;
    struct err err;
};

// False: nothing is decided. *want bytes of the body must arrive first; 0 = all.
bool call_start_decide(struct call_start *ret, struct session *s, const struct group *g, struct request *q,
                       const struct call_body *first, size_t *want);
// Plans which rank gets which arguments, as far as their beginning tells. `ret` has its verdict. `c` is NULL if there
// is no call yet. False: as above. The plan and the split are there if the call can start now.
bool call_start_plan(struct call_start *ret, struct session *s, const struct group *g, struct call *c,
                     const struct request *q, const struct call_body *first, size_t *want);
void call_start_forget(struct call_start *start); // frees the plan and the split
