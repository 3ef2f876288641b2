// SPDX-License-Identifier: Apache-2.0
// A body in a queue: one that is queued as it comes, to be ended by record_stream_end() or
// record_stream_drop(), or a whole one. It forgets itself when all of it is out, or the queue is done: then adding to
// it does nothing.
#pragma once

#include "common/wire/record_queue.h"

struct record_stream {
    struct record_queue *queue;
    struct record_item *item; // NULL: none, or it is out
    bool whole;
};

// With its first part, which must not be empty. Errors as of record_writer_push(). `s` must stay where it is.
int record_stream_begin(struct record_stream *s, struct record_queue *q, const struct record_header *h,
                        const struct record_part *parts, size_t n, struct err *err);
int record_stream_add(struct record_stream *s, const struct record_part *parts, size_t n, struct err *err);
void record_stream_end(struct record_stream *s); // that was all
// Nothing that waits of it is sent any more, where it was not ended. True: something of it is out already, so that the
// peer has to be told.
bool record_stream_drop(struct record_stream *s);
size_t record_stream_waits(const struct record_stream *s); // bytes of it
// As record_writer_push() and record_writer_copy(): all of it.
int record_stream_push(struct record_stream *s, struct record_queue *q, const struct record_header *h,
                       const struct record_part *parts, size_t n, struct err *err);
int record_stream_copy(struct record_stream *s, struct record_queue *q, const struct record_header *h, const void *body,
                       size_t len, struct err *err);
bool record_stream_unsent(const struct record_stream *s); // it is in the queue, and nothing of it is out
bool record_stream_withdraw(struct record_stream *s);     // takes such a one out again; false: it is none
// The owner goes. One that was not ended is dropped.
void record_stream_forget(struct record_stream *s);
