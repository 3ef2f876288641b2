// SPDX-License-Identifier: Apache-2.0
// A body in a queue. It is queued as it comes, up to record_stream_end() or record_stream_drop(), or as a whole. The
// stream forgets the body when all of it is out, or when the queue is done. Adding to it then does nothing.
#pragma once

#include "common/wire/record_queue.h"

struct record_stream {
    struct record_queue *queue;
    struct record_item *item; // NULL: none, or it is out
    bool whole;
};

// Begins with the first part, which must not be empty. Errors as of record_writer_push(). `s` must stay where it is.
int record_stream_begin(struct record_stream *s, struct record_queue *q, const struct record_header *h,
                        const struct record_part *parts, size_t n, struct err *err);
int record_stream_add(struct record_stream *s, const struct record_part *parts, size_t n, struct err *err);
void record_stream_end(struct record_stream *s); // the body is complete
// Drops the waiting bytes of a body that was not ended. True: some of the body is out already, so the peer must be
// told.
bool record_stream_drop(struct record_stream *s);
size_t record_stream_waits(const struct record_stream *s); // waiting bytes of it
// As record_writer_push() and record_writer_copy(): queue a whole body.
int record_stream_push(struct record_stream *s, struct record_queue *q, const struct record_header *h,
                       const struct record_part *parts, size_t n, struct err *err);
int record_stream_copy(struct record_stream *s, struct record_queue *q, const struct record_header *h, const void *body,
                       size_t len, struct err *err);
bool record_stream_unsent(const struct record_stream *s); // it is in the queue, and no byte of it is out
bool record_stream_withdraw(struct record_stream *s);     // takes it out again in this case; otherwise false
// The owner is done with the stream. A body that was not ended is dropped.
void record_stream_forget(struct record_stream *s);
