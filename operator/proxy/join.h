// SPDX-License-Identifier: Apache-2.0
// Joins results that are batches while they arrive. The joined document has one tensor after the other, and for each
// tensor the rows of one rank after the other. While the rows of another rank come first, a rank is told to pause
// (answer.h) when a window of its result has arrived. The joined head is sent when all heads have arrived, the end when
// all ranks have answered. Results that are whole, or have their tensors in different orders, are joined when all ranks
// have answered.
#pragma once

#include "operator/proxy/call.h"

// Returns true if a RESULT of this rank that begins with `piece` can be joined as it arrives. False: *want bytes of it
// must arrive first; 0 = all.
bool join_takes(const struct call_rank *rank, const struct call_body *piece, size_t *want);
void join_open(struct call *c); // results are joined from now on, or all of them have arrived
// Takes a part of the rank's result. The first part contains the whole head. `last`: the result is complete.
// ERR_INVALID and ERR_LIMIT.
int join_add(struct call_rank *rank, const struct record_part *part, bool last, struct err *err);
enum join_progress {
    JOIN_GOES_ON,  // more results must arrive, or the client must read
    JOIN_STREAMED, // all of the answer has been queued, piece by piece
    JOIN_ANSWERED, // all of the answer has been queued, at once
};
// Sends what can be sent now. Returns an enum join_progress, or an error for the client.
int join_advance(struct call *c, struct err *err);
size_t join_waits(const struct call *c, uint32_t rank); // bytes of that rank's result that wait
void join_free(struct call *c);
