// SPDX-License-Identifier: Apache-2.0
// How a call is split over ranks: which piece of its arguments each rank gets, and whose results make up its answer. It
// follows from the mode, the rule (in the call's head, else of the method's registration) and the group's meshes. It is
// computed when the call is sent, and freed when it is answered.
#pragma once

#include "common/wire/dispatch.h"
#include "operator/proxy/request.h"

struct dispatch_plan {
    struct dispatch d;
    const bool *wanted; // of each rank: its result is part of the answer
    // Of a batch that was split (split.h): its rows, those of a piece; and rows of padding, 0 = there is none.
    size_t rows, each, added;
    // private
    struct arena memory;
    struct quota *quota; // borrowed
    size_t charged;
};

// *ret NULL: one rank runs it, or in its mode a rank gets everything, or its own element of a list, and all results
// make a list. The request was resolved and the group is complete. ERR_INVALID, ERR_NOT_FOUND and ERR_CONFLICT for the
// client, ERR_LIMIT. What it takes is charged to the quota, which is borrowed.
int dispatch_plan_make(const struct request *q, const struct group *g, const struct record_call *parts,
                       struct quota *quota, struct dispatch_plan **ret, struct err *err);
void dispatch_plan_free(struct dispatch_plan *d); // accepts NULL

bool dispatch_plan_is_whole(const struct request *q, const struct dispatch_plan *d); // each rank gets all arguments
bool dispatch_plan_wants(const struct dispatch_plan *d, uint32_t rank);              // d NULL: all
