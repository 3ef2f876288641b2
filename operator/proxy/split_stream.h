// SPDX-License-Identifier: Apache-2.0
// A batch that is split while it comes in. Its head is there whole before anything goes out; then the values of one
// tensor after the other go out, rows to the ranks that they are for, without a copy. Each rank's own document
// has its tensors in the order in which they come, so nothing has to be kept, but for the last row where it is
// repeated.
#pragma once

#include "operator/proxy/call.h"

// Whether so much of the arguments has come that it can be made, *ret_head bytes; else *want says how much has to be
// there, 0 = all, because this is not a batch that can be split so.
bool split_stream_ready(const struct record_call *args, size_t *ret_head, size_t *want);
// Into `n` pieces. *ret NULL: this batch cannot be split so; it has to be here whole. ERR_INVALID and ERR_LIMIT as of
// split_make(). The quota is borrowed. Long work (fiber.h).
int split_stream_make(const char *method, uint32_t n, bool pad, const struct record_call *args, struct quota *quota,
                      struct split_stream **ret, struct err *err);
// For the ranks of that plan, which has `n` pieces, and gets what is known of the batch. ERR_LIMIT.
int split_stream_aim(struct split_stream *s, const char *method, struct dispatch_plan *d, struct err *err);
void split_stream_free(struct split_stream *s); // accepts NULL

// The head of the document for that rank: of its own, behind the head of the call.
struct record_part split_stream_head(const struct split_stream *s, const struct call *c, uint32_t rank);
size_t split_stream_head_len(const struct split_stream *s); // of the batch's own, which is not passed on
// The next stretch of the values, which ranks get their rows of. Errors as of call_slot_send(), ERR_INVALID for too
// much.
int split_stream_take(struct split_stream *s, struct call *c, const struct record_part *part, struct err *err);
int split_stream_end(const struct split_stream *s, const char *method,
                     struct err *err); // that was all: ERR_INVALID where something is missing
