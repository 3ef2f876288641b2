// SPDX-License-Identifier: Apache-2.0
// A batch that is split while it comes in. Its head is there whole before anything goes out; then the values of one
// tensor after the other go out, rows to the ranks that they are for, without a copy. Each rank's own document
// has its tensors in the order in which they come, so nothing has to be kept, but for the last row where it is
// repeated.
#pragma once

#include "operator/proxy/call.h"

// The plan says into how many pieces, and gets what is known of the batch. `args` are the arguments as far as they have
// come. *ret NULL: more is to be there before, *want bytes of the arguments, 0 = all, because this is not a batch that
// can be split so. ERR_INVALID and ERR_LIMIT as of split_make(). The quota is borrowed.
int split_stream_begin(const struct request *q, struct dispatch_plan *d, const struct record_call *args,
                       struct quota *quota, struct split_stream **ret, size_t *want, struct err *err);
void split_stream_free(struct split_stream *s); // accepts NULL

// The head of the document for that rank: of its own, behind the head of the call.
struct record_part split_stream_head(const struct call *c, uint32_t rank);
size_t split_stream_head_len(const struct call *c); // of the batch's own, which is not passed on
// The next stretch of the values, which ranks get their rows of. Errors as of call_slot_send(), ERR_INVALID for too
// much.
int split_stream_take(struct call *c, const struct record_part *part, struct err *err);
int split_stream_end(const struct call *c, struct err *err); // that was all: ERR_INVALID where something is missing
