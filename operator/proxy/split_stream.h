// SPDX-License-Identifier: Apache-2.0
// Splits a batch while it arrives. All of its head must have arrived before anything is sent. Then the values of one
// tensor after the other are sent, and each rank gets its rows, without a copy. The document of each rank has its
// tensors in the order in which they arrive. Nothing is therefore kept, except the last row if padding repeats it.
#pragma once

#include "operator/proxy/call.h"

// Returns true if enough of the arguments has arrived to split them: the head of the batch, *ret_head bytes. False:
// *want bytes must have arrived first. 0 = all, because this is not a batch that can be split while it arrives.
bool split_stream_ready(const struct record_call *args, size_t *ret_head, size_t *want);
// Splits into `n` pieces. *ret is NULL if this batch must be here whole. The errors of split_make(). The quota is
// borrowed. Long work (fiber.h).
int split_stream_make(const char *method, uint32_t n, bool pad, const struct record_call *args, struct quota *quota,
                      struct split_stream **ret, struct err *err);
// Assigns the pieces to the ranks of that plan, which has as many pieces. Notes the rows in the plan. ERR_LIMIT.
int split_stream_aim(struct split_stream *s, const char *method, struct dispatch_plan *d, struct err *err);
void split_stream_free(struct split_stream *s); // accepts NULL

// The head of that rank's own document. It follows the head of the call.
struct record_part split_stream_head(const struct split_stream *s, const struct call *c, uint32_t rank);
size_t split_stream_head_len(const struct split_stream *s); // of the batch's own head, which no rank gets
// Sends the ranks their rows of the next segment of values. The errors of call_rank_send(), and ERR_INVALID: the batch
// is too long.
int split_stream_take(struct split_stream *s, struct call *c, const struct record_part *part, struct err *err);
// Bytes of the last row that have arrived, and wait until padding repeats them.
size_t split_stream_waits(const struct split_stream *s);
int split_stream_end(const struct split_stream *s, const char *method,
                     struct err *err); // the batch is complete. ERR_INVALID: something is missing
