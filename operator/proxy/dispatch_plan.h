// SPDX-License-Identifier: Apache-2.0
// The plan of a call that is split over ranks: which piece of the arguments each rank gets, and which results make up
// the answer. It follows from the mode, the rule (in the call's head, else from the method's registration) and the
// group's meshes. It is computed when the call is sent, and freed when it is answered.
#pragma once

#include "common/wire/dispatch.h"
#include "operator/proxy/request.h"

struct dispatch_plan {
    struct dispatch d;
    const bool *wanted; // for each rank: whether its result is part of the answer
    // For a batch that was split (split.h): its rows, the rows of a piece, and the rows of padding (0 = none).
    size_t rows, each, added;
    // private
    struct arena memory;
    struct quota *quota; // borrowed
    size_t charged;
};

// *ret is NULL if no plan is needed: one rank runs the call, or each rank gets everything or its own element of a list,
// and all results make a list. The request must be resolved and the group complete. The plan is charged to the quota,
// which is borrowed. ERR_LIMIT; ERR_INVALID, ERR_NOT_FOUND and ERR_CONFLICT for the client.
int dispatch_plan_make(const struct request *q, const struct group *g, const struct record_call *parts,
                       struct quota *quota, struct dispatch_plan **ret, struct err *err);
void dispatch_plan_free(struct dispatch_plan *d); // accepts NULL

bool dispatch_plan_is_whole(const struct request *q, const struct dispatch_plan *d); // each rank gets all arguments
bool dispatch_plan_wants(const struct dispatch_plan *d, uint32_t rank);              // d is NULL: true for all
